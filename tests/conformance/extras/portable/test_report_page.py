"""The page of portability: each two backends compared by the answers that the run holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conformance.extras.portable import report_page
from conformance.extras.portable.pairs import ABSENT, IN_RANGE, SAFE
from conformance.extras.portable.report_page import (
    PortedPair,
    Porting,
    portability_page,
    portings,
)
from reports.html.site import write_site
from reports.run_store.open_run import open_run
from tests.conformance.processes import castigate
from tests.html.planted import planted_run

DATA = "tests/conformance/data/saturating.py"
ONE, OTHER = f"{DATA}:Saturating", f"{DATA}:AllButMinusInfinity"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("portability")
    backends = [f"--backend={each}" for each in (ONE, OTHER)]
    asked = ("--document=onnx-cast:25", "--source=float32", "--source=int4", "--target=int8")
    castigate("run", *backends, *asked, "--jobs=1", f"--out={folder / 'run'}")
    assert castigate("report", str(folder / "run"), f"--out={folder / 'site'}")[0] == 0
    return folder


def test_pairs_are_safe_or_safe_in_range(folder: Path) -> None:
    [porting] = portings(open_run(str(folder / "run")))
    assert (porting.one, porting.other) == (ONE, OTHER)
    assert {(each.source, each.portability) for each in porting.pairs} == {
        ("float32", IN_RANGE),
        ("int4", SAFE),
    }
    [range_] = porting.differing
    assert range_.words == "agree: every finite value, infinity, NaN"


def test_the_page_shows_them_and_is_linked(folder: Path) -> None:
    page, front = (
        (folder / "site" / name).read_text() for name in ("portability.html", "index.html")
    )
    assert 'href="portability.html"' in front
    assert "1 safe, 1 safe in range" in front
    [cell] = re.findall(r'<a class="v-deviates"[^>]*>', page)
    assert 'href="case.html#onnx-cast:25/float32/int8"' in cell
    assert 'title="float32 → int8: safe in range; agree: every finite value, infinity, NaN"' in cell
    assert page.count('<a class="v-conforms"') == 1


def test_any_nan_equals_any_nan(tmp_path: Path) -> None:
    """One of the planted backends returns another NaN payload than the others."""
    for porting in portings(open_run(planted_run(tmp_path / "run"))):
        assert [(each.portability, each.words) for each in porting.pairs] == [(SAFE, "")]


def test_of_many_backends_those_that_share_all_answers_are_compared_as_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roads = [f"gcc:{number}" for number in range(9)]
    store = open_run(planted_run(tmp_path / "run", backends=["ort", "vendor:fast", *roads]))
    [porting] = portings(store)
    assert porting.backends == ["ort", *roads, "vendor:fast"]
    assert porting.names == "ort +9 and vendor:fast"
    assert porting.casts == "casts.html#port=ort&into=vendor%3Afast"
    page = portability_page(store)
    assert page is not None
    assert page.content["alike"] == ["ort, gcc:0 and its 8 other roads"]
    assert page.content["drawn"] == [porting]
    monkeypatch.setattr(report_page, "MOST_MATRICES", 0)
    page = portability_page(store)
    assert page is not None
    assert page.content["drawn"] == []


def test_a_pair_that_one_of_two_offers_is_not_offered(tmp_path: Path) -> None:
    pytest.importorskip("numpy")
    backends = ("--backend=numpy", f"--backend={ONE}")
    asked = ("--document=onnx-cast:25", "--source=int4", "--source=int8", "--target=uint8")
    castigate("run", *backends, *asked, "--jobs=1", f"--out={tmp_path}")
    [porting] = portings(open_run(str(tmp_path)))
    found = {each.source: each.portability for each in porting.pairs}
    assert found == {"int4": ABSENT, "int8": SAFE}
    assert f"only {ONE} answers it" in [each.words for each in porting.pairs]
    assert porting.counts == {ABSENT: 1, SAFE: 1}


def test_a_site_that_compares_nothing_has_no_page_of_it(tmp_path: Path) -> None:
    write_site([planted_run(tmp_path / "run")], tmp_path / "site")
    assert not (tmp_path / "site" / "portability.html").exists()
    assert "portability" not in (tmp_path / "site" / "index.html").read_text()


def test_usual_dtypes_come_first() -> None:
    names = ("uint16", "float8e5m2", "bool", "float32", "float64")
    pairs = tuple(PortedPair(name, name, SAFE, "", "") for name in names)
    porting = Porting("one", "other", pairs)
    order = ["float32", "float64", "bool", "float8e5m2", "uint16"]
    assert porting.sources == porting.targets == order
