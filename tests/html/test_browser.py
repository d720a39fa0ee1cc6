"""The report in a browser: pages, filters and accessibility, opened from `file://`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from shutil import which
from typing import Any

import pytest

from conformance.extras import WITH_PAGE, pages_of
from conformance.extras.containers.findings import ChangedTensor, PartyFault
from conformance.extras.containers.results import (
    CHANGED,
    IDENTICAL,
    PARTLY,
    REFUSED,
    Containers,
    WayResult,
    store,
)
from reports.html.site import write_site
from specs.cases import Case
from specs.editions import edition
from specs.loader import documents
from tests.html.planted import HALF, STARTED, cases, one_cell, planted_run, violated

CHROMIUM = os.environ.get("CHROMIUM") or which("chromium") or which("chromium-browser")
CASE = "onnx-cast:25/float32/float8e4m3fn/saturate:1"
PYPTO_CASE = "pypto-cast:0.2/float32/int32/mode:CAST_NONE"
PAGES = (
    "index.html",
    "finding-ort-unexplained.html",
    "finding-vendor-fast-no-answer.html",
    "open.html",
    "trend.html",
    "behaviors.html",
    "layouts.html",
    "cases.html",
    "casts.html",
    "casts.html#port=ort&into=torch",
    "document-onnx-cast.html",
    "document-pypto-cast.html",
    "quantization.html",
    f"case.html#{CASE}",
    "case.html#onnx-cast:25/int8/string",
    "pair.html#float32/float8e4m3fn",
    "docket.html",
    "portability.html",
    "containers.html",
)
MATRICES = {
    "casts.html": "#uses",
    "casts.html#port=ort&into=torch": "#uses",
    "document-onnx-cast.html": "#matrices",
    "document-pypto-cast.html": "#matrices",
    "portability.html": "main",
    "quantization.html": "main",
}
"""Pages with matrices of fields, and where these are."""
TARGETS = [
    *("float32", "float16", "bfloat16", "float64"),
    *("int8", "uint8", "int32", "int64", "bool"),
    *("float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e4m3"),
    *("float8e3m4", "float8e4m3b11fnuz", "float8e8m0"),
    *("float6e2m3", "float6e3m2", "float4e2m1", "int4", "int2", "uint4", "uint2"),
    *("int16", "uint64", "uint32", "uint16", "complex64", "complex128", "string"),
]
"""The targets of the planted cases of onnx-cast, those first that most people use."""
WIDTHS = (1400, 400)
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is missing: install it, or set CHROMIUM to its path"
    ),
]


def plant_containers(run: str) -> None:
    """Store a survey of containers with a run: each outcome once, and what changes."""
    example = ChangedTensor(
        dtype="bfloat16",
        writer="numpy",
        reader="text",
        probe="row of 1",
        shape=(1,),
        patterns=("0x0d",),
        read_dtype="",
        read_shape=(),
        read_patterns=(),
        script="import numpy as np\nprint(np.arange(8, dtype=np.int16)[::2].tobytes().hex())\n",
    )
    finding = PartyFault(
        container="npy",
        fault="the dtype becomes V2",
        party="numpy",
        side="writes",
        dtypes=("bfloat16",),
        writers=("numpy",),
        readers=("text",),
        example=example,
    )
    outcomes = {"float16": IDENTICAL, "float32": PARTLY, "bfloat16": CHANGED, "float64": REFUSED}
    way = {"container": "npy", "writer": "numpy", "reader": "text", "fault": "", "identical": 1}
    ways = tuple(
        WayResult.model_validate(way | {"dtype": dtype, "outcome": outcome, "refused": {}})
        for dtype, outcome in outcomes.items()
    )
    store(run, Containers(date="2026-11-28", versions={}, ways=ways, findings=(finding,)))


def quantization_cases() -> list[Case]:
    """The cases of a pair of dtypes to be quantized."""
    every = edition(documents()["onnx-quantize-linear"], "25").cases()
    return [one for one in every if (one.source, one.target) == ("float32", "int8")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("browsed")
    every = [*cases(), *quantization_cases()]
    new = one_cell("ort", HALF, violated("ort", HALF))
    runs = [
        planted_run(folder / "before", of=every),
        planted_run(folder / "now", new, after=1, of=every),
    ]
    plant_containers(runs[-1])
    write_site(runs, folder / "site", lambda run: pages_of(run, WITH_PAGE.values()))
    return (folder / "site").as_uri()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    api = pytest.importorskip("playwright.sync_api")
    with api.sync_playwright() as playwright:
        # As root, in a container, Chromium has no sandbox.
        sandbox = [] if os.geteuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=sandbox)
        yield browser
        browser.close()


class Reader:
    """A browser page, and everything that went wrong on it."""

    def __init__(self, browser: Any, site: str, **window: Any) -> None:
        self.site, self.wrong = site, list[str]()
        self.context = browser.new_context(viewport={"width": 1280, "height": 900}, **window)
        self.page = self.context.new_page()
        self.page.on(
            "console", lambda message: self.wrong.append(f"{message.type}: {message.text}")
        )
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("requestfailed", lambda request: self.wrong.append(f"failed: {request.url}"))
        self.page.on("request", self._check_request)

    def _check_request(self, request: Any) -> None:
        if not request.url.startswith(f"{self.site}/"):
            self.wrong.append(f"asked for {request.url}")

    def open(self, name: str) -> Any:
        """Open a page and wait until it is drawn."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.site}/{name}")
        self.wait_until_drawn(name)
        return self.page

    def wait_until_drawn(self, name: str) -> None:
        """Wait until a page's script has drawn it."""
        marks = {
            "case": "#case[data-shown]",
            "pair.": "#pair[data-shown]",
            "document": "#matrices a",
            "cases": "#list tbody tr",
            "casts": "#uses td a",
            "bitcasts": "#main[data-shown]",
            "calls": "#main[data-shown]",
        }
        for begin, mark in marks.items():
            if name.startswith(begin) and not (begin == "case" and name.startswith("cases")):
                self.page.wait_for_selector(mark, state="attached")


@pytest.fixture
def reader(chromium: Any, site: str) -> Iterator[Reader]:
    one = Reader(chromium, site)
    yield one
    one.context.close()
    assert one.wrong == []


def test_a_field_says_what_each_backend_does(reader: Reader) -> None:
    page = reader.open("casts.html")
    pair = '#uses td a[href="pair.html#float32/float8e4m3fn"]'
    assert page.locator(f"{pair} span").count() == 3
    page.focus(pair)
    page.wait_for_selector("#shown tbody tr")
    assert page.locator("#shown h2").inner_text() == "float32 → float8e4m3fn"
    assert "torch" in page.locator("#shown tbody").inner_text()
    assert "violates" in page.locator("#shown tbody").inner_text()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('href')") != (
        "pair.html#float32/float8e4m3fn"
    )


def test_casts_are_filtered_by_mode(reader: Reader) -> None:
    page = reader.open("casts.html")
    every = page.locator("#uses td a").count()
    page.select_option("select[name=mode]", "saturate:0")
    assert 0 < page.locator("#uses td a").count() < every
    assert page.url.endswith("#mode=saturate%3A0")


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_from_disk_is_accessible_and_fits_a_phone(reader: Reader, name: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    reader.page.set_viewport_size({"width": 360, "height": 740})
    page = reader.open(name)
    assert page.locator("h1").inner_text().strip()
    assert "Castigate" in page.title()
    assert page.locator(".note").count() == 0
    wide, window = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window
    assert reader.wrong == []
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        violations = [
            (scheme, each["id"], each["nodes"][0]["html"][:200], len(each["nodes"]))
            for each in axe.run(page).response["violations"]
            if each["impact"] in ("serious", "critical")
        ]
        assert violations == []
    reader.wrong.clear()  # what axe's own script does


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", MATRICES)
def test_a_field_is_large_enough_for_a_finger(reader: Reader, name: str, width: int) -> None:
    reader.page.set_viewport_size({"width": width, "height": 860})
    page = reader.open(name)
    sizes = page.eval_on_selector_all(
        ".matrix td:not(.off) > a",
        "(links) => links.map((each) => each.getBoundingClientRect())"
        ".filter((box) => box.width).map((box) => [box.width, box.height])",
    )
    assert sizes
    assert min(map(min, sizes)) >= 24


@pytest.mark.parametrize("name", MATRICES)
def test_the_legend_stands_above_the_matrices(reader: Reader, name: str) -> None:
    page = reader.open(name)
    legends = page.locator(".legend:visible")
    assert legends.count() == 1
    legend, matrix = legends.bounding_box(), page.locator(".matrix").first.bounding_box()
    assert legend["y"] + legend["height"] <= matrix["y"]
    badges = legends.locator("dt").all_inner_texts()
    signs = page.locator(".matrix td a").all_inner_texts()
    assert {each for text in signs for each in text.split()} <= {each.split()[0] for each in badges}


@pytest.mark.parametrize("name", ["casts.html", "document-onnx-cast.html"])
def test_usual_dtypes_come_first(reader: Reader, name: str) -> None:
    page = reader.open(name)
    matrix = page.locator(".matrix").first
    columns = [each.strip() for each in matrix.locator("thead th span").all_inner_texts()]
    assert columns == [each for each in TARGETS if each in columns]
    assert name != "casts.html" or columns == TARGETS
    rows = [each.strip() for each in matrix.locator("tbody th").all_inner_texts()]
    assert rows == [each for each in TARGETS if each in rows]
    assert {"float32", "int8"} <= {*rows}


def scrolling(page: Any) -> list[tuple[bool, bool]]:
    """Return whether each visible region is wider than its window, and whether it says so."""
    page.wait_for_timeout(100)
    found = page.eval_on_selector_all(
        ".scroll",
        "(all) => all.filter((each) => each.clientWidth).map((each) => ["
        "each.scrollWidth > each.clientWidth,"
        "getComputedStyle(each, '::before').content.includes('Scroll sideways')])",
    )
    return [(wide, says) for wide, says in found]


@pytest.mark.parametrize(
    "name", ["index.html", "portability.html", "casts.html", "open.html", f"case.html#{CASE}"]
)
def test_a_table_that_scrolls_says_so_and_no_other(reader: Reader, name: str) -> None:
    reader.page.set_viewport_size({"width": 400, "height": 860})
    page = reader.open(name)
    narrow = scrolling(page)
    assert (True, True) in narrow
    page.set_viewport_size({"width": 2400, "height": 860})
    wide = scrolling(page)
    assert (False, False) in wide
    page.set_viewport_size({"width": 400, "height": 860})
    assert scrolling(page) == narrow
    assert {says == is_wide for is_wide, says in [*narrow, *wide]} == {True}


def test_every_page_of_the_navigation_is_two_clicks_away_without_scripts(
    chromium: Any, site: str
) -> None:
    one = Reader(chromium, site, java_script_enabled=False)
    page = one.context.pages[0]
    page.goto(f"{site}/index.html")
    entries = page.locator("nav[aria-label=Report] a")
    files = [each.get_attribute("href") for each in entries.all()]
    assert len(files) <= 7
    reached = {*files}
    for file in files:
        page.goto(f"{site}/{file}")
        here = page.locator("nav[aria-label=Report] [aria-current]")
        assert [each.get_attribute("href") for each in here.all()] == [file]
        further = page.locator("header nav.pages a")
        assert further.count() <= 7
        reached |= {each.get_attribute("href") for each in further.all()}
    named = {"case.html", "pair.html", "document-", "finding-"}
    pages = {name for name in PAGES if "#" not in name and not name.startswith((*named,))}
    assert reached == pages
    one.context.close()
    assert one.wrong == []


def test_the_front_page_begins_with_what_changed_and_since_when(reader: Reader) -> None:
    page = reader.open("index.html")
    titles = page.locator("main h2").all_inner_texts()
    assert titles[:2] == ["What changed", "Findings"]
    news = page.locator("section[aria-labelledby=news]")
    assert f"Compared with the run of {STARTED:%Y-%m-%d %H:%M} UTC" in news.inner_text()
    assert "worse" in news.locator("li").first.inner_text()
    known = page.locator("section[aria-labelledby=findings] li").all_inner_texts()
    assert [each for each in known if "worse" in each]
    assert [each for each in known if "worse" not in each]


def test_a_case_is_two_clicks_from_the_front_page(reader: Reader) -> None:
    page = reader.open("index.html")
    page.click("table.overview tbody th a >> text=onnx-cast")
    page.click("figure:has(b:text-is('torch')) a[aria-label^='float32 to float8e4m3fn:']")
    page.wait_for_selector("#case[data-shown]")
    assert re.search(r"case\.html#onnx-cast:25/float32/float8e4m3fn/saturate:[01]$", page.url)
    assert "float32 → float8e4m3fn" in page.locator("h1").inner_text()
    assert page.locator("section.backend").count() == 3
    assert "(saturate = " in page.locator("[aria-label='Rules of this case'] tbody").inner_text()
    assert page.locator("svg[role=img] rect.run").count() > 0
    assert page.locator(".example .field").count() > 0


def test_search_on_the_front_page_opens_the_list_of_cases(reader: Reader) -> None:
    page = reader.open("index.html")
    page.fill("input[name=q]", "float32 saturate:1 e4m3fnuz")
    page.keyboard.press("Enter")
    page.wait_for_selector("#list tbody tr")
    assert page.locator("#list tbody tr").count() == 1
    page.click("#list tbody a")
    page.wait_for_selector("#case[data-shown]")
    assert page.url.endswith("case.html#onnx-cast:25/float32/float8e4m3fnuz/saturate:1")


@pytest.mark.parametrize("word", ["cast_rint", "CAST_RINT"])
def test_search_ignores_case(reader: Reader, word: str) -> None:
    page = reader.open(f"cases.html#q={word}")
    rows = page.locator("#list tbody th").all_inner_texts()
    assert rows
    assert all("mode:CAST_RINT" in row for row in rows)


def test_filters_are_stored_in_the_address(reader: Reader) -> None:
    page = reader.open("cases.html")
    everything = page.locator("#found").inner_text()
    page.select_option("select[name=backend]", "torch")
    page.select_option("select[name=verdict]", "violates")
    found = page.locator("#found").inner_text()
    assert found != everything
    assert "backend=torch" in page.url
    assert "verdict=violates" in page.url
    rows = page.locator("#list tbody tr")
    assert rows.count() > 0
    assert all("violates" in row for row in rows.all_inner_texts())
    address = page.url.removeprefix(f"{reader.site}/")
    page = reader.open(address)
    assert page.locator("#found").inner_text() == found
    assert page.locator("select[name=backend]").input_value() == "torch"
    page.click("button[type=reset]")
    page.wait_for_url("**/cases.html")
    assert page.locator("#found").inner_text() == everything


def test_new_divergences_are_linked_from_the_front_page(reader: Reader) -> None:
    page = reader.open("index.html")
    page.click("a[href*='change=new']")
    page.wait_for_selector("#list tbody tr")
    assert page.locator("#list tbody th").all_inner_texts() == [HALF]
    page = reader.open(f"case.html#{HALF}")
    first = page.locator("section.backend").first
    assert "new since the previous run: rounds" in first.inner_text()
    assert page.locator(".past li").first.inner_text().endswith(": conforms")


def test_a_rule_links_to_its_broken_cases_and_back(chromium: Any, tmp_path: Path) -> None:
    broken = violated("torch", PYPTO_CASE, rule="clamp")
    write_site(
        [planted_run(tmp_path / "run", one_cell("torch", PYPTO_CASE, broken))], tmp_path / "site"
    )
    one = Reader(chromium, (tmp_path / "site").as_uri())
    page = one.open("document-pypto-cast.html")
    page.click("tr[id='clamp'] td.number a")
    page.wait_for_selector("#list tbody tr")
    assert page.locator("#list tbody th").all_inner_texts() == [PYPTO_CASE]
    assert page.locator("select[name=rule]").input_value() == "pypto-cast clamp"
    page.click("#list tbody a")
    page.wait_for_selector("#case[data-shown]")
    rules = page.locator("[aria-label='Rules of this case']")
    assert "constraint 1 lines 12, 94" in rules.inner_text()
    page.click(".broken h4 a")
    page.wait_for_url("**/document-pypto-cast.html#clamp")
    page.click("tr[id='clamp'] a.lines >> nth=0")
    shown = page.locator("tr:target")
    assert "clamp" in shown.inner_text()
    # The matrices above are drawn by now, and the row that the address names is still in view.
    assert shown.evaluate("(row) => row.getBoundingClientRect().top < innerHeight")
    one.context.close()
    assert one.wrong == []


def test_matrices_are_filtered_and_arrow_keys_move_in_them(reader: Reader) -> None:
    page = reader.open("document-onnx-cast.html#version=25&backend=ort&mode=none&from=float32")
    assert page.locator("figure:visible").count() == 1
    page.locator("figure:visible td:not(.off) > a").first.focus()
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert first.startswith("float32 to float32: ")
    assert second.startswith("float32 to float16: ")
    page.keyboard.press("Enter")
    page.wait_for_selector("#case[data-shown]")
    assert page.url.endswith("#onnx-cast:25/float32/float16")


def test_a_document_has_a_page_for_all_its_versions(chromium: Any, tmp_path: Path) -> None:
    early = [one for one in edition(documents()["onnx-cast"], "9").cases() if one.source == "int8"]
    run = planted_run(tmp_path / "run", of=[*early, *cases()])
    write_site([run], tmp_path / "site")
    one = Reader(chromium, (tmp_path / "site").as_uri())
    page = one.open("index.html")
    page.click("table.overview tbody th a >> text=onnx-cast\u00a09")
    one.wait_until_drawn("document")
    assert page.locator("#version").inner_text() == "version 9"
    of_9 = page.locator("figure:visible").first.locator("td a").count()
    page.click("nav >> text=Rules")
    assert page.locator("#version").inner_text() == "version 9"
    page.select_option("select[name=version]", "")
    assert page.locator("#version").inner_text() == "version 25"
    assert page.locator("figure:visible").first.locator("td a").count() > of_9
    one.context.close()
    assert one.wrong == []


def test_casts_say_whether_another_backend_answers_alike(reader: Reader) -> None:
    page = reader.open("casts.html#port=torch&into=vendor%3Afast")
    field = page.locator('#uses td a[href="pair.html#float32/float16"]')
    label = field.get_attribute("aria-label")
    assert label.startswith("float32 to float16: only the first answers in 3 cases; ")
    assert "other bits, where the document allows both in 1 case" in label
    field.focus()
    page.wait_for_selector("#shown tbody tr")
    row = page.locator(f"#shown tr:has(a[href='case.html#{HALF}'])").inner_text()
    assert "other bits, where the document allows both" in row
    page.select_option("select[name=into]", "torch")
    assert "the same bits in 1 case" in field.get_attribute("aria-label")
    page.click("button[type=reset]")
    page.wait_for_url("**/casts.html")
    assert page.locator('#uses td a[href="pair.html#float32/float16"] span').count() == 3


def test_a_pair_shows_agreement_between_backends(reader: Reader) -> None:
    page = reader.open("pair.html#float32/float16")
    row = page.locator("table.agreement tbody tr").nth(1)
    torch = [cell.strip() for cell in row.locator("th, td").all_inner_texts()]
    assert torch == ["torch", "8 of 9", "", "6 of 6, 0 of 1 bit for bit"]
    group = page.locator(".group").first.locator(".camp")
    assert "vendor:fast: other bits than torch" in group.last.inner_text()


def test_copy_button_copies_the_script(chromium: Any, site: str) -> None:
    one = Reader(chromium, site, permissions=["clipboard-read", "clipboard-write"])
    page = one.open(f"case.html#{CASE}")
    page.locator("details.script summary").first.click()
    page.locator("details.script button").first.click()
    page.wait_for_selector("button:text-is('Copied')")
    assert page.evaluate("navigator.clipboard.readText()") == "print(1)\n"
    one.context.close()
    assert one.wrong == []


def test_dark_color_scheme_is_dark(chromium: Any, site: str) -> None:
    def brightness(scheme: str) -> int:
        one = Reader(chromium, site, color_scheme=scheme)
        page = one.open("index.html")
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        one.context.close()
        return sum(map(int, re.findall(r"\d+", color)[:3]))

    assert brightness("dark") < 200 < 600 < brightness("light")


def test_content_security_policy_blocks_injected_scripts(chromium: Any, site: str) -> None:
    one = Reader(chromium, site)
    page = one.open("index.html")
    page.evaluate(
        "() => { const script = document.createElement('script');"
        "script.textContent = 'document.title = \"stolen\"'; document.body.append(script);"
        "const image = document.createElement('img');"
        "image.setAttribute('onerror', 'document.title = \"stolen\"');"
        "document.body.append(image); image.src = 'missing.png';"
        "document.body.setAttribute('style', 'color: red'); }"
    )
    page.wait_for_timeout(200)
    assert page.title() != "stolen"
    assert page.evaluate("document.body.style.color") == ""
    assert any("Content Security Policy" in message for message in one.wrong)
    one.context.close()


def test_an_unknown_case_or_pair_shows_a_note(reader: Reader) -> None:
    page = reader.open("case.html#onnx-cast:25/float32/<b>float")
    assert page.locator(".note").inner_text() == (
        "There is no case onnx-cast:25/float32/<b>float in this run."
    )
    page = reader.open("case.html#%")
    assert page.locator(".note").inner_text() == "URI malformed"
    page = reader.open("pair.html#a/b")
    assert page.locator(".note").inner_text() == "There is no pair a/b in this run."
