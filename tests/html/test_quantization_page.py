"""The pages of quantization and of blocks: which backends follow which rule, and where not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from specs.selection import select
from tests.conformance.processes import castigate
from tests.html.planted import data

PLANTED = "tests/conformance/data/quantizing_wrongly.py:Planted"
HALF = "onnx-quantize-linear:25/float16/int8/scale:float16/form:tensor"
DOCUMENT = "onnx-quantize-linear:25"
ASKED = (f"--document={DOCUMENT}", "--document=mx-blocks", "--source=float16")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quantization")
    targets = ("--target=int8", "--target=uint8")
    castigate(
        "run", f"--backend={PLANTED}", *ASKED, *targets, "--jobs=1", f"--out={folder / 'run'}"
    )
    assert castigate("report", str(folder / "run"), f"--out={folder / 'site'}")[0] == 0
    return folder / "site"


def fields(page: str) -> dict[tuple[str, str], str]:
    """The verdict of each field, by the names of its row and of its column."""
    found = re.findall(
        r'<a class="v-([\w-]+)" href="[^"]*" title="[^"]*" aria-label="([^,]*), [^,]*, ([^:]*):',
        page,
    )
    return {(row, column): verdict for verdict, row, column in found}


def test_a_document_of_quantization_is_a_table_of_dtypes_and_forms(site: Path) -> None:
    page = (site / "quantization.html").read_text()
    assert fields(page) == {
        (f"float16 → {target}", form): verdict
        for target, verdict in (("uint8", "conforms"), ("int8", "violates"))
        for form in ("tensor", "axis", "block", "other modes")
    }
    pair = "onnx-quantize-linear:25/float16/uint8/"
    count = sum(pair in case.id for case in select([DOCUMENT]))
    assert f'title="{count - 3} conforms"' in page
    [link] = re.findall(r'href="(cases.html[^"]*to=int8&amp;q=form%3Aaxis\+scale%3Afloat16)"', page)
    assert link.startswith("cases.html#document=onnx-quantize-linear%3A25&amp;backend=")


def test_a_document_of_blocks_is_a_table_of_rules_and_elements(site: Path) -> None:
    page = (site / "blocks.html").read_text()
    found = fields(page)
    assert found.pop(("ceil", "int8")) == "violates"
    assert set(found.values()) == {"conforms"}
    assert {("floor", "int8"), ("round-up", "int8"), ("even", "int8")} <= found.keys()


def test_other_operations_have_no_page(site: Path) -> None:
    front = (site / "index.html").read_text()
    for name in ("casts", "calls", "bitcasts"):
        assert f"{name}.html" not in front
        assert not (site / f"{name}.html").exists()


def test_a_case_has_the_rules_of_each_step(site: Path) -> None:
    details = data(site, "onnx-quantize-linear.float16")
    rows = details["rules"][details["rules_of"][HALF]]
    by_inputs = {inputs: (rule, level) for rule, level, _, inputs in rows}
    assert by_inputs["scale: negative, zero, infinite, nan"] == ("ordinary-scale", "unspecified")
    assert by_inputs["rounding: whole, fraction"] == ("round-quotient", "required")


def test_open_results_of_quantization_and_blocks_are_listed(site: Path) -> None:
    page = (site / "open.html").read_text()
    assert "None in the cases of this run" not in page
    assert "quotient: nan; quotient: out-of-range; scale: negative" in page
    assert "infinity-block; nan-block" in page


def test_a_finding_counts_the_wrong_inputs_of_each_case(site: Path) -> None:
    [finding] = site.glob("finding-*-quantizes-otherwise.html")
    where = finding.read_text().partition('id="where"')[2]
    assert re.search(r">≥ [\d,]+</a>", where)
    assert "inputs x" not in where


def test_each_page_tells_where_a_backend_differs(site: Path) -> None:
    for name in ("quantization.html", "blocks.html"):
        differences = (site / name).read_text().partition('id="differences"')[2]
        pages = re.findall(r'<a href="(finding-[^"]*)">', differences)
        assert pages
        assert all((site / page).exists() for page in pages)
    assert "(0.75) and zeros gives scale 0x80 (2), not 0x7f (1)" in differences


def test_the_pages_are_linked(site: Path) -> None:
    assert 'href="quantization.html"' in (site / "index.html").read_text()
    for name in ("quantization.html", "blocks.html"):
        page = (site / name).read_text()
        assert 'href="quantization.html"' in page
        assert 'href="blocks.html"' in page
