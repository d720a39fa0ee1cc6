"""The board in a browser: opened from the disk, searched, on a phone, and by axe."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.extras.board.asked import asked_pairs
from tests.conformance.processes import castigate
from tests.html.planted import STARTED, cases, default_judgement, planted_run
from tests.html.test_browser import CHROMIUM, Reader, chromium

__all__ = ["chromium"]  # a fixture
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is missing: install it, or set CHROMIUM to its path"
    ),
]
PAIR = "pair.html#float32/float8e4m3fn"
PAGES = ("index.html", PAIR, f"{PAIR}/vendor:fast", "pair.html#complex64/int2", "pair.html")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("board")
    runs = [
        planted_run(folder / "run"),
        planted_run(folder / "failed", after=1, complete=False),
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", str(int(STARTED.timestamp())))
        assert castigate("board", *runs, f"--out={folder / 'site'}")[0] == 0
    return (folder / "site").as_uri()


@pytest.fixture
def reader(chromium: Any, site: str) -> Iterator[Reader]:
    one = Reader(chromium, site)
    one.page.clock.set_fixed_time(STARTED)
    yield one
    one.context.close()
    assert one.wrong == []


def opened(reader: Reader, name: str) -> Any:
    page = reader.open(name)
    page.wait_for_selector("#pair[data-shown]" if name.startswith("pair") else "table.board")
    return page


@pytest.mark.parametrize("name", PAGES)
def test_a_page_opens_from_disk_is_accessible_and_fits_a_phone(reader: Reader, name: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    reader.page.set_viewport_size({"width": 360, "height": 740})
    page = opened(reader, name)
    assert "Castigate" in page.title()
    wide, window = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window
    assert reader.wrong == []
    page.set_viewport_size({"width": 1400, "height": 900})
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        found = axe.run(page).response["violations"]
        assert [(scheme, each["id"], each["nodes"][0]["html"][:200]) for each in found] == []
    reader.wrong.clear()  # what axe's own script does


@pytest.mark.parametrize(
    ("typed", "pair"),
    [
        ("float32 float8e4m3fn", "float32/float8e4m3fn"),
        ("f32 -> e4m3fn", "float32/float8e4m3fn"),
        ("torch.float32 to torch.float8_e4m3fn", "float32/float8e4m3fn"),
        ("fp32/int8", "float32/int8"),
        ("double half", "float64/float16"),
    ],
)
def test_a_pair_is_found_as_people_write_it(reader: Reader, typed: str, pair: str) -> None:
    page = opened(reader, "index.html")
    page.fill("input[name=q]", typed)
    page.keyboard.press("Enter")
    page.wait_for_selector("#pair[data-shown]", state="attached")
    assert page.url.endswith(f"pair.html#{pair}")


def test_one_dtype_filters_the_rows_and_a_wrong_word_is_named(reader: Reader) -> None:
    page = opened(reader, "index.html")
    page.fill("input[name=q]", "bf16")
    rows = page.locator("tr[data-pair]:visible")
    assert rows.count() == 1
    assert "bfloat16" in rows.inner_text()
    page.fill("input[name=q]", "float99")
    assert page.locator("#found").inner_text() == "no dtype is called float99"
    assert page.locator("tr[data-pair]:visible").count() == 20


def test_a_cell_opens_its_smallest_input_clause_and_script(reader: Reader) -> None:
    page = opened(reader, "index.html")
    page.click('a.answer[href="pair.html#float32/float8e4m3fn/torch"]')
    page.wait_for_selector("#pair[data-shown]", state="attached")
    chosen = page.locator("section.chosen")
    assert chosen.locator("h2").inner_text().startswith("torch 1.2, run of 2026-01-02")
    text = chosen.inner_text()
    assert "§ 1" in text
    assert chosen.locator(".x-input code").first.inner_text() == "0x00000000"
    script = chosen.locator("pre").first.inner_text()
    assert script.startswith("castigate explain onnx-cast:25/float32/float8e4m3fn/saturate:")
    assert "known in 1.2" not in text.lower()  # What no cause explains has no first version.
    threads = page.locator("section[aria-labelledby=threads] a")
    assert threads.count() > 10
    assert all(each.get_attribute("href").startswith("https://") for each in threads.all())


def test_what_no_claimed_document_says_is_folded_but_for_the_asked_case(reader: Reader) -> None:
    page = opened(reader, f"{PAIR}/vendor:fast")
    chosen = page.locator("section.chosen")
    assert "differs" in chosen.locator("div:not(details div) > h3").all_inner_texts()[0]
    declined = next(
        case
        for case in cases()
        if default_judgement("vendor:fast", case).verdict == "unsupported"
        and (case.source, case.target) not in asked_pairs()
    )
    page = opened(reader, f"pair.html#{declined.source}/{declined.target}/vendor:fast")
    summary = page.locator("section.chosen details.folded summary").inner_text()
    assert re.fullmatch(r"\d+ more cases?: .*unsupported.*", summary)


def test_a_run_becomes_grey_by_the_date_of_the_reader(reader: Reader) -> None:
    page = opened(reader, "index.html")
    column = "td[data-row='2'].stale"
    assert page.locator(column).count() == 0
    page.clock.set_fixed_time(STARTED.replace(month=3, day=10))
    page.reload()
    page.wait_for_selector(column, state="attached")
    assert page.locator(column).count() == 20
    assert "2026-01-02" in page.locator("th[data-row='2']").inner_text()


def test_the_first_screen_needs_no_script(chromium: Any, site: str) -> None:
    one = Reader(chromium, site, java_script_enabled=False)
    one.page.goto(f"{site}/index.html")
    assert one.page.locator("a.answer").count() > 20
    one.context.close()
    assert one.wrong == []


def test_a_failed_run_is_named_on_its_page(reader: Reader) -> None:
    page = opened(reader, f"{PAIR}/torch")
    notes = page.locator("section.chosen .note").all_inner_texts()
    assert "the run of 2026-01-03 failed: the run did not end" in notes


def test_the_site_is_one_folder(site: str) -> None:
    names = {path.name for path in Path(site.removeprefix("file://")).iterdir()}
    assert names == {
        *("index.html", "pair.html", "board.json", "board.schema.json", "badges"),
        *("data", "static", "castigate-report"),
    }
