"""The search box of the atlas: which lines it has, and which it finds."""

from __future__ import annotations

import json
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

from lab.pictures import chromium, chromium_path

DOCS = Path(__file__).parents[1] / "docs"
HTML = """\
<h1 id="found">Found<a class="headerlink" href="#found">¶</a></h1>
<p>Made by <code>castigate</code>,
twice.</p>
<table><thead><tr><th>pair</th><th>agree</th></tr></thead>
<tbody><tr><td>float32 → int8</td><td>-129 &lt; x</td></tr></tbody></table>
<details><summary>int8: 1 proved</summary><p>always</p></details>
<h2 id="ort">ort</h2>
<ul><li>one<ul><li>inside</li></ul></li></ul>
<pre><code><span># 1.31.1</span>
import onnx
</code></pre>
"""


@pytest.fixture(scope="module")
def site_pages() -> ModuleType:
    where = spec_from_file_location("site_pages", DOCS / "site_pages.py")
    assert where is not None
    assert where.loader is not None
    module = module_from_spec(where)
    where.loader.exec_module(module)
    return module


def test_rows_items_paragraphs_and_code_are_lines(site_pages: ModuleType) -> None:
    assert site_pages.lines_of(HTML) == [
        ("found", "Found", "Made by castigate,\ntwice."),
        ("found", "Found", "pair  agree"),
        ("found", "Found", "float32 → int8  -129 < x"),
        ("found", "Found, int8: 1 proved", "always"),
        ("ort", "ort", "one"),
        ("ort", "ort", "inside"),
        ("ort", "ort", "# 1.31.1"),
        ("ort", "ort", "import onnx"),
    ]


@pytest.mark.browser
@pytest.mark.skipif(
    chromium_path() is None, reason="Chromium is missing: install it, or set CHROMIUM to it"
)
def test_the_box_finds_lines_with_all_words(tmp_path: Path) -> None:
    pytest.importorskip("playwright.sync_api")
    lines = [
        ("docket.html", "ort", "ort", "<b>NaN</b> to int8"),
        ("docket.html", "", "", "NaN to bool"),
        *(("proof.html", "all", "All", f"proved {number}") for number in range(150)),
    ]
    (tmp_path / "lines.js").write_text(f"const atlasLines = {json.dumps(lines)};", "utf-8")
    page_of_box = tmp_path / "index.html"
    page_of_box.write_text(
        '<meta charset="utf-8"><div id="atlas-search"></div><script src="lines.js"></script>'
        f'<script src="{(DOCS / "atlas_search.js").as_uri()}"></script>',
        "utf-8",
    )
    with chromium() as browser:
        page = browser.new_page()
        page.goto(page_of_box.as_uri())
        box, status = page.get_by_label("Search the atlas"), page.get_by_role("status")
        box.fill("INT8 nan")
        assert status.inner_text() == "1 line"
        assert page.locator("li div").all_inner_texts() == ["<b>NaN</b> to int8"]
        assert page.locator("li a").get_attribute("href") == "docket.html#ort"
        box.fill("docket bool")
        assert page.locator("li a").get_attribute("href") == "docket.html"
        box.fill("proved")
        assert status.inner_text() == "150 lines, of which the first 100 are shown"
        assert page.locator("li").count() == 100
        box.fill("nothing has this")
        assert status.inner_text() == "0 lines"
        box.fill(" ")
        assert status.inner_text() == ""
