"""The pictures of the docs: what they show is what the pages are."""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING

import pytest

from lab.pictures import (
    COMMAND,
    DIGESTS,
    IMAGES,
    PICTURES,
    chromium,
    chromium_path,
    planted_report,
    shown_digests,
)
from tests.lab.commands import ROOT

if TYPE_CHECKING:
    from playwright.sync_api import Browser

in_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        chromium_path() is None, reason="Chromium is missing: install it, or set CHROMIUM to it"
    ),
]


def test_every_picture_is_made_by_the_command_and_shown_by_a_page() -> None:
    assert {path.stem for path in IMAGES.glob("*.png")} == {*PICTURES}
    assert {*json.loads(DIGESTS.read_text())} == {*PICTURES}
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    shown = {
        name for page in pages for name in re.findall(r"images/([\w-]+)\.png", page.read_text())
    }
    assert shown == {*PICTURES}


def test_every_picture_has_its_size() -> None:
    sizes = {
        path.stem: struct.unpack(">II", path.read_bytes()[16:24]) for path in IMAGES.glob("*.png")
    }
    assert sizes == {name: (each.width, each.height) for name, each in PICTURES.items()}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    pytest.importorskip("playwright.sync_api")
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return planted_report(tmp_path_factory.mktemp("pictured"))


@pytest.fixture(scope="module")
def digests(browser: Browser, planted: Path) -> dict[str, str]:
    return shown_digests(browser, planted)


class TestDigests:
    pytestmark = in_browser

    def test_no_picture_is_older_than_what_it_shows(self, digests: dict[str, str]) -> None:
        known = json.loads(DIGESTS.read_text())
        older = [name for name in PICTURES if digests[name] != known[name]]
        assert older == [], f"pages changed since their pictures; make them anew: {COMMAND}"

    def test_a_change_that_nobody_sees_leaves_the_digests(
        self, browser: Browser, planted: Path, digests: dict[str, str], tmp_path: Path
    ) -> None:
        site = copytree(planted, tmp_path / "site")
        with (site / "static" / "style.css").open("a") as style:
            style.write(".unused { color: red; } /* of no element */")
        page = site / "index.html"
        page.write_text(page.read_text().replace("<h1>", '<h1 id="first">\n'))
        assert shown_digests(browser, site) == digests

    @pytest.mark.parametrize(
        ("file", "old", "new", "changed"),
        [
            ("layouts.html", "Where an answer", "Where the answer", {"layouts"}),
            (
                "static/style.css",
                ".matrix a { display: block; min-width: 24px",
                ".matrix a { display: block; min-width: 20px",
                {"casts", "casts-narrow", "matrix"},
            ),
            ("static/style.css", "    --link: ", "    --link: red; --no: ", {"matrix"}),
        ],
    )
    def test_a_change_that_is_seen_changes_the_pictures_digests(
        self,
        browser: Browser,
        planted: Path,
        digests: dict[str, str],
        tmp_path: Path,
        *,
        file: str,
        old: str,
        new: str,
        changed: set[str],
    ) -> None:
        site = copytree(planted, tmp_path / "site")
        text = (site / file).read_text()
        assert old in text
        (site / file).write_text(text.replace(old, new))
        found = shown_digests(browser, site)
        assert {name for name in PICTURES if found[name] != digests[name]} == changed
