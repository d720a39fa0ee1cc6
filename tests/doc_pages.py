"""The pages of the documentation."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ATLAS = DOCS / "atlas"
BY_HAND = {"block_libraries.md", "index.md", "quantization_backends.md"}
"""Pages of the atlas that no command writes, so that their own commands are run."""
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(DOCS.glob("*.md")),
    *(ATLAS / name for name in sorted(BY_HAND)),
]
ALL_PAGES = [*PAGES, ROOT / "CHANGELOG.md", *sorted({*ATLAS.glob("*.md")} - {*PAGES})]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
