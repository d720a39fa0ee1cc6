"""Adds the pages beside ``docs/`` to the site, README as its front page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}


def on_files(files: Any, config: Any) -> Any:
    """Add the pages, with links that hold in the site."""
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=_linked(text)))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Let links to the added pages lead there."""
    return _linked(markdown.replace("](../", "]("))


def _linked(text: str) -> str:
    for source, page in PAGES.items():
        text = re.sub(rf"\]\({re.escape(source)}(#[^)]*)?\)", rf"]({page}\1)", text)
    return text


def on_post_page(output: str, **_: Any) -> str:
    """Search from the disk by our own script: the theme would fetch one from the network."""
    return output.replace("https://unpkg.com/iframe-worker/shim", "offline_search.js")


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for the page of what is not found."""
    return on_post_page(output_content)
