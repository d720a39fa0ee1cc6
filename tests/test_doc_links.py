"""Pages are few, short and linked, and what they link to exists."""

import re
from pathlib import Path

import pytest

from tests.doc_pages import ALL_PAGES, ATLAS, DOCS, PAGES, ROOT, name_of

MOST_PAGES = 20
"""The most pages: a reader finds a page by reading the list of all of them."""


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w -]", "", one.lower()).strip().replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", ALL_PAGES, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    wrong = []
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        is_dead = anchor and target.suffix == ".md" and anchor not in anchors(target)
        if not target.exists() or is_dead:
            wrong.append(link)
    assert wrong == []


def test_files_that_the_pages_name_exist() -> None:
    """Paths in backticks that begin with a folder of the repository."""
    known = "specs|oracles|reports|conformance|lab|tests|examples|docs"
    wrong = [
        f"{name_of(page)}: {path}"
        for page in PAGES
        for path in re.findall(rf"`((?:{known})/[\w./-]+)`", page.read_text(encoding="utf-8"))
        if not (ROOT / path).exists() and path not in EXAMPLE_PATHS
    ]
    assert wrong == []


EXAMPLE_PATHS = {
    "tests/conformance/extras/NAME/",
    "specs/docket/PROJECT.yaml",
    "specs/documents/PAGE.sha256",
    "specs/documents/demo_cast.yaml",
}
"""What a reader of the recipes and of the architecture is to create."""


def test_every_page_is_linked_from_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    missing = [path.name for path in DOCS.glob("*.md") if f"](docs/{path.name})" not in readme]
    assert missing == []
    assert "](docs/atlas/index.md)" in readme


def test_every_page_of_the_atlas_is_linked_from_its_index() -> None:
    listed = re.findall(r"^\| \[([\w.]+)\]\(\1\)", (ATLAS / "index.md").read_text("utf-8"), re.M)
    assert listed == sorted({path.name for path in ATLAS.glob("*.md")} - {"index.md"})


def test_the_pages_are_few() -> None:
    assert len([*DOCS.glob("*.md")]) <= MOST_PAGES


def test_every_page_has_a_place_in_the_site() -> None:
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    placed = re.findall(r"[\w/-]+\.md", nav)
    added = ["atlas/index.md", "changelog.md", "contributing.md", "index.md"]
    assert sorted(placed) == sorted([*added, *(path.name for path in DOCS.glob("*.md"))])


def test_the_readme_is_short_and_its_pictures_are_small() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) < 120
    heavy = [path.name for path in (DOCS / "images").iterdir() if path.stat().st_size > 150_000]
    assert heavy == []
