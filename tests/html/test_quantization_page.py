"""The pages of quantization and of blocks: who follows which rule, and where not."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conformance.processes import castigate_in_process

PLANTED = "tests/conformance/data/quantizing_wrongly.py:Planted"
ASKED = ("--document=onnx-quantize-linear:25", "--document=mx-blocks", "--source=float16")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quantization")
    targets = ("--target=int8", "--target=uint8")
    castigate_in_process("run", f"--backend={PLANTED}", *ASKED, *targets, f"--out={folder / 'run'}")
    assert castigate_in_process("report", str(folder / "run"), f"--out={folder / 'site'}")[0] == 0
    return folder / "site"


def rows(page: str) -> dict[str, str]:
    """The first badge of each row, by the name of the row."""
    found = re.findall(r'<tr><th scope="row">([^<]*)</th><td><a class="badge v-(\w+)"', page)
    return dict(found)


def test_a_document_of_quantization_is_a_table_of_dtypes(site: Path) -> None:
    page = (site / "quantization.html").read_text()
    assert rows(page) == {"float16 → uint8": "conforms", "float16 → int8": "violates"}
    link = "cases.html#document=onnx-quantize-linear%3A25&amp;from=float16&amp;to=int8&amp;backend="
    assert link in page


def test_a_document_of_blocks_is_a_table_of_rules(site: Path) -> None:
    page = (site / "blocks.html").read_text()
    found = rows(page)
    assert found.pop("ceil") == "violates"
    assert set(found.values()) == {"conforms"}
    assert {"floor", "round-up", "even"} <= found.keys()


def test_each_page_tells_where_a_backend_differs(site: Path) -> None:
    for name in ("quantization.html", "blocks.html"):
        differences = (site / name).read_text().partition('id="differences"')[2]
        pages = re.findall(r'<a href="(finding-[^"]*)">', differences)
        assert pages
        assert all((site / page).exists() for page in pages)
    assert "(0.75) and zeros gives scale 0x80 (2), not 0x7f (1)" in differences


def test_the_pages_are_linked(site: Path) -> None:
    front = (site / "index.html").read_text()
    assert 'href="quantization.html"' in front
    assert 'href="blocks.html"' in front
