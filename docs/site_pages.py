"""Adds the pages beside ``docs/`` to the site, README first, and the search of the atlas."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
ATLAS = "atlas/"
BOX = '\n\n<div id="atlas-search"></div>\n\n'
SCRIPTS = '<script src="../atlas_lines.js"></script><script src="../atlas_search.js"></script>'
Line = tuple[str, str, str, str]
"""The address of a page, the anchor of a heading or nothing, the heading, and a line below it."""
lines: list[Line] = []


def on_files(files: Any, config: Any) -> Any:
    """Add the pages, with links that hold in the site."""
    from mkdocs.structure.files import File  # which the tests do not have

    lines.clear()
    for source, page in PAGES.items():
        text = (ROOT / source).read_text(encoding="utf-8").replace("](docs/", "](")
        files.append(File.generated(config, page, content=_linked(text)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Let links to the added pages lead there, and put the search box on the atlas's first page."""
    if page.file.src_uri.startswith(ATLAS):
        page.meta["search"] = {"boost": 0.2}  # pages that explain come first
        markdown = markdown.replace("<details>", '<details markdown="1">')
    if page.file.src_uri == f"{ATLAS}index.md":
        title, _, rest = markdown.partition("\n")
        return title + BOX + rest
    if page.file.src_uri.startswith(ATLAS):
        return markdown
    return _linked(markdown.replace("](../", "]("))


def _linked(text: str) -> str:
    for source, page in PAGES.items():
        text = re.sub(rf"\]\({re.escape(source)}(#[^)]*)?\)", rf"]({page}\1)", text)
    return text


def on_page_content(html: str, page: Any, **_: Any) -> None:
    """Keep the lines of a page of the atlas for its search."""
    if page.file.src_uri.startswith(ATLAS) and page.file.name != "index":
        lines.extend((page.file.url.removeprefix(ATLAS), *line) for line in lines_of(html))


def lines_of(html: str) -> list[tuple[str, str, str]]:
    """Return table rows, list items, paragraphs and lines of code, each with its heading."""
    reader = _Lines()
    reader.feed(html)
    reader.close()
    return reader.found


class _Lines(HTMLParser):
    HEADINGS = ("h1", "h2", "h3", "h4")
    ENDS = ("p", "li", "tr", "ul", "pre", "summary", *HEADINGS)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self.anchor = self.heading = self.folded = self.text = ""
        self.is_code = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in self.ENDS:
            self._end_line()
        if tag in self.HEADINGS:
            self.anchor = dict(attrs).get("id") or ""
        self.is_code |= tag == "pre"

    def handle_endtag(self, tag: str) -> None:
        if tag in self.HEADINGS:
            self.heading = self.text.replace("¶", "").strip()
            self.folded = self.text = ""
        elif tag == "summary":
            self.folded = f", {self.text.strip()}"
            self.text = ""
        elif tag in self.ENDS:
            self._end_line()
            self.is_code &= tag != "pre"
        elif tag in ("td", "th"):
            self.text += "  "

    def handle_data(self, data: str) -> None:
        *whole, rest = data.split("\n") if self.is_code else [data]
        for part in whole:
            self.text += part
            self._end_line()
        self.text += rest

    def _end_line(self) -> None:
        if text := self.text.strip():
            self.found.append((self.anchor, self.heading + self.folded, text))
        self.text = ""


def on_post_page(output: str, page: Any = None, **_: Any) -> str:
    """Search from the disk by our own script: the theme would fetch one from the network."""
    depth = 0 if page is None else page.url.count("/")
    output = output.replace(
        "https://unpkg.com/iframe-worker/shim", "../" * depth + "offline_search.js"
    )
    if page is not None and page.file.src_uri == f"{ATLAS}index.md":
        output = output.replace("</body>", f"{SCRIPTS}</body>")
    return output


def on_post_template(output_content: str, **_: Any) -> str:
    """The same for the page of what is not found."""
    return on_post_page(output_content)


def on_post_build(config: Any) -> None:
    """Write the lines of the atlas as a script: from the disk a page may read no other file."""
    text = json.dumps(lines, ensure_ascii=False, separators=(",", ":"))
    (Path(config.site_dir) / "atlas_lines.js").write_text(
        f"const atlasLines = {text};\n", encoding="utf-8"
    )
