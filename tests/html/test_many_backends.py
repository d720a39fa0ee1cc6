"""The report of forty backends in a browser: folded roads, filters, and pages that stay small."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oracles.registry import framework_of
from reports.html.site import write_site
from reports.judgement import Judgement
from specs.cases import Case
from specs.editions import edition
from specs.loader import documents
from tests.conformance.processes import castigate
from tests.html.planted import default_judgement, planted_run, violated
from tests.html.test_browser import CHROMIUM, Reader, chromium

__all__ = ["chromium"]  # a fixture
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None, reason="Chromium is missing: install it, or set CHROMIUM to its path"
    ),
]
NAMES = (
    *("reference", "ort", "ort:folded", "ort:threads", "ort:cpu", "onnx", "ml_dtypes", "numpy"),
    *("torch", "torch:compile", "torch:threads", "torch:mps", "torch:xpu", "torch:cuda"),
    *("node", "node:liftoff", "node:turbofan", "gcc:f16c", "gcc", "gcc:x87", "gcc:avx512"),
    *("clang", "clang:x87", "clang:f16c", "numba", "numba:fastmath", "numba:parallel"),
    *("jax", "jax:jit", "jax:folded", "tensorflow", "tensorflow:xla", "openvino:cpu"),
    *("openvino:cpu-folded", "tvm:llvm", "onnxslim", "onnxsim", "wasmtime"),
    *("stacks/acme.py:Npu", "exec:./vendor"),
)
DIFFERENT = {"gcc:x87": "float8e5m2", "torch:compile": "float16"}
"""The roads that differ from their framework, and the target to which they cast wrongly."""
FOLDED = 19
SHOWN = len(NAMES) - FOLDED
CASE = "onnx-cast:25/float32/float8e5m2/saturate:1"
PAGES = (
    *("index.html", "open.html", "trend.html", "behaviors.html", "cases.html", "casts.html"),
    *("casts.html#backend=gcc%3A*", "document-onnx-cast.html", "document-pypto-cast.html"),
    *(f"case.html#{CASE}", "pair.html#float32/float8e5m2"),
)


def judged(backend: str, case: Case) -> Judgement | None:
    """A judgement that is the same on all roads of a framework, but for DIFFERENT."""
    if case.target == DIFFERENT.get(backend) and case.document == "onnx-cast":
        return violated(backend, case.id)
    judgement = default_judgement(framework_of(backend), case)
    return Judgement(
        case.id, backend, judgement.verdict, judgement.problems, inputs=judgement.inputs
    )


def some_cases() -> list[Case]:
    """One source of two documents."""
    every = [("onnx-cast", "25"), ("pypto-cast", "0.2")]
    listed = [one for name, version in every for one in edition(documents()[name], version).cases()]
    return [one for one in listed if one.source == "float32"]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("many")
    return planted_run(folder / "run", judged, backends=NAMES, of=some_cases())


@pytest.fixture(scope="module")
def site(run: str) -> str:
    folder = Path(run).with_name("site")
    write_site([run], folder)
    return folder.as_uri()


@pytest.fixture
def reader(chromium: Any, site: str) -> Iterator[Reader]:
    one = Reader(chromium, site)
    yield one
    one.context.close()
    assert one.wrong == []


def heads(page: Any) -> list[str]:
    """The visible heads of the columns of backends on the front page."""
    found = page.locator("table.overview thead [data-backends]:visible")
    return [" ".join(each.split()) for each in found.all_inner_texts()]


def check_by_axe(reader: Reader) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    for scheme in ("light", "dark"):
        reader.page.emulate_media(color_scheme=scheme)
        found = axe.run(reader.page).response["violations"]
        assert [
            (scheme, each["id"], each["nodes"][0]["html"][:200])
            for each in found
            if each["impact"] in ("serious", "critical")
        ] == []
    reader.wrong.clear()  # what axe's own script does


@pytest.mark.ci_runs_one_of(4)
@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_forty_backends_is_accessible_and_fits_a_phone(reader: Reader, name: str) -> None:
    reader.page.set_viewport_size({"width": 360, "height": 740})
    page = reader.open(name)
    wide, window = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window
    assert reader.wrong == []
    page.set_viewport_size({"width": 1280, "height": 900})
    check_by_axe(reader)


def test_roads_that_answer_alike_are_folded_until_a_key_shows_them(reader: Reader) -> None:
    page = reader.open("index.html")
    shown = heads(page)
    assert len(shown) == SHOWN
    assert "gcc 1.2 same: :f16c, :avx512" in shown
    assert shown.index("gcc:x87 1.2") == shown.index("gcc 1.2 same: :f16c, :avx512") + 1
    assert not any(each.startswith("numba:") for each in shown)
    page.focus("#show-folded")
    page.keyboard.press("Space")
    assert len(heads(page)) == len(NAMES)


def test_a_road_shows_only_where_it_differs(reader: Reader) -> None:
    page = reader.open("index.html")
    page.select_option("#backend-filters select[name=backend]", '["gcc:x87"]')
    assert heads(page) == ["gcc:x87 1.2"]
    rows = page.locator("table.overview tbody tr:visible")
    cells = {
        row.locator("th").inner_text().partition("\u00a0")[0]: row.locator("td:visible").last
        for row in rows.all()
    }
    assert cells["pypto-cast"].inner_text() == "as gcc"
    assert "✕" in cells["onnx-cast"].inner_text()


def test_the_front_page_is_filtered_by_framework_document_and_verdict(reader: Reader) -> None:
    page = reader.open("index.html")
    choose = page.select_option
    label = "torch on all roads"
    choose("#backend-filters select[name=backend]", label=label)
    assert len(heads(page)) == 6
    named = page.locator("section.found:visible h3").all_inner_texts()
    assert [each.split()[0] for each in named] == ["torch", "torch:compile"]
    choose("#backend-filters select[name=document]", "pypto-cast")
    rows = page.locator("table.overview tbody tr:visible")
    assert [each.split()[0] for each in rows.locator("th").all_inner_texts()] == ["pypto-cast"]
    choose("#backend-filters select[name=document]", "")
    choose("#backend-filters select[name=backend]", "")
    choose("#backend-filters select[name=verdict]", "violates")
    assert [each.split()[0] for each in heads(page)] == ["torch", "torch:compile", "gcc:x87"]


def test_the_front_page_shows_its_content_and_unfolds_without_scripts(
    chromium: Any, site: str
) -> None:
    one = Reader(chromium, site, java_script_enabled=False)
    page = one.context.pages[0]
    page.goto(f"{site}/index.html")
    assert len(heads(page)) == SHOWN
    page.check("#show-folded")
    assert len(heads(page)) == len(NAMES)
    assert page.locator("#backend-filters select:visible").count() == 0
    one.context.close()
    assert one.wrong == []


@pytest.mark.parametrize("width", [1400, 400])
def test_the_heads_of_rows_and_columns_stay_in_view(reader: Reader, width: int) -> None:
    reader.page.set_viewport_size({"width": width, "height": 500})
    page = reader.open("cases.html")
    region = page.locator(".scroll:has(#list)")
    place = region.bounding_box()
    region.evaluate("(each) => each.scrollTo(900, 900)")
    head = page.locator("#list thead th").nth(5).bounding_box()
    first = page.locator("#list tbody th").nth(30).bounding_box()
    assert abs(head["y"] - place["y"]) <= 1 or head["y"] + head["height"] <= place["y"] + 120
    assert abs(first["x"] - place["x"]) <= 1
    assert first["width"] <= 0.6 * width


def test_the_list_of_cases_has_a_column_per_chosen_backend(reader: Reader) -> None:
    page = reader.open("cases.html")
    columns = page.locator("#list thead th")
    assert columns.count() == 1 + SHOWN
    page.select_option("select[name=backend]", "gcc:*")
    assert columns.all_inner_texts() == ["case", "gcc", "gcc:f16c", "gcc:x87", "gcc:avx512"]
    page.select_option("select[name=verdict]", "violates")
    rows = page.locator("#list tbody th").all_inner_texts()
    assert rows
    assert all("/float8e5m2/" in each for each in rows)


def test_a_field_counts_backends_by_verdict_and_shows_signs_of_few(reader: Reader) -> None:
    page = reader.open("casts.html")
    field = page.locator('#uses td a[href="pair.html#float32/float8e5m2"]')
    assert field.get_attribute("aria-label").startswith("float32 to float8e5m2: 1 violates, ")
    assert field.locator("span").first.inner_text() == "✕ 1"
    field.focus()
    page.wait_for_selector("#shown tbody tr")
    assert page.locator("#shown tbody tr").count() < 5
    assert "reference, ort, onnx" in page.locator("#shown tbody").inner_text()
    page.select_option("select[name=backend]", "gcc:*")
    assert field.get_attribute("aria-label").partition(": ")[2].startswith("gcc ")
    assert page.locator("#order li").all_inner_texts() == ["gcc 1.2", "gcc:x87 1.2"]


def test_a_matrix_stands_for_all_backends_with_the_same_verdicts(reader: Reader) -> None:
    page = reader.open("document-onnx-cast.html#mode=saturate%3A1")
    names = page.locator("figure:visible figcaption b").all_inner_texts()
    assert 2 < len(names) < 10
    [alone] = [each for each in names if each == "gcc:x87"]
    page.select_option("#filters select[name=backend]", alone)
    assert page.locator("figure:visible").count() == 1
    assert page.locator("#found").inner_text().endswith(" verdicts")


def test_of_forty_backends_a_pair_compares_those_that_differ(reader: Reader) -> None:
    page = reader.open("pair.html#float32/float8e5m2")
    rows = page.locator("table.agreement tbody tr")
    assert rows.count() == 2
    assert rows.last.locator("th").inner_text() == "gcc:x87"
    assert "gcc:f16c" in rows.first.locator("th").inner_text()
    assert page.locator("table.agreement thead th").all_inner_texts() == [
        "reference +38",
        "gcc:x87",
    ]


def test_a_case_shows_roads_that_answer_alike_once(reader: Reader) -> None:
    page = reader.open(f"case.html#{CASE}")
    assert page.locator("section.backend").count() == SHOWN - 1
    named = page.locator("section.backend h3").all_inner_texts()
    assert "· conforms gcc 1.2 same: :f16c, :avx512" in [" ".join(each.split()) for each in named]


@pytest.mark.parametrize("width", [1400, 360])
def test_the_board_folds_roads_too_and_is_accessible(
    chromium: Any, run: str, tmp_path: Path, width: int
) -> None:
    assert castigate("board", run, f"--out={tmp_path / 'board'}")[0] == 0
    one = Reader(chromium, (tmp_path / "board").as_uri())
    one.page.set_viewport_size({"width": width, "height": 900})
    page = one.open("index.html")
    assert page.locator("table.board thead [data-row]:visible").count() == SHOWN
    wide, window = page.evaluate(
        "[document.documentElement.scrollWidth, document.documentElement.clientWidth]"
    )
    assert wide <= window
    page.select_option("#backend-filters select[name=backend]", label="gcc on all roads")
    shown = page.locator("table.board thead [data-row]:visible").all_inner_texts()
    assert [each.split("1.2")[0].split() for each in shown] == [
        *(["gcc"], ["gcc", ":f16c"], ["gcc", ":x87"], ["gcc", ":avx512"]),
    ]
    assert one.wrong == []
    check_by_axe(one)
    one.context.close()
