"""Reports, findings and comparisons of backends whose names have options and paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.ledger.ledger_file import parts_of, path_of
from specs.selection import case_named
from tests.conformance.processes import castigate
from tests.html.planted import HALF, Elements, planted_run, violated

LONG = f"jax:plugin=/{'folder/' * 60}plugin.so,name=mine"
NAMES = ("jax:plugin=/lib/x.so,name=mine", "jax:plugin=/lib-x.so,name=mine", LONG)
"""Two names that differ in a character which no file name may have, and one that is too long."""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> str:
    return planted_run(
        tmp_path_factory.mktemp("run") / "run",
        lambda backend, case: violated(backend, case.id),
        backends=NAMES,
        of=[case_named(HALF)],
    )


def test_each_finding_has_a_page_that_the_front_page_links(run: str, tmp_path: Path) -> None:
    code, _, err = castigate("report", run, f"--out={tmp_path / 'site'}")
    assert code == 0, err
    pages = {each.name for each in (tmp_path / "site").glob("finding-*.html")}
    front = Elements((tmp_path / "site" / "index.html").read_text())
    linked = {values.get("href") for tag, values in front.found if tag == "a"}
    assert len(pages) == len(NAMES)
    # Roads of a framework that find the same are told once.
    assert len(pages & linked) == 1
    assert max(map(len, pages)) < 200


def test_findings_and_comparisons_take_the_names(run: str) -> None:
    code, out, err = castigate("findings", run)
    assert (code, err) == (1, "")
    assert all(f"{name} 1.2: 1 finding" in out for name in NAMES)
    code, out, err = castigate("diff", run, f"--backend={NAMES[0]}", f"--backend={LONG}")
    assert (code, err) == (0, ""), out


@pytest.mark.parametrize("name", [*NAMES, "tvm:llvm,mattr=+f16c", "torch:cuda,to=cpu"])
def test_a_name_with_options_is_no_ledgers(name: str) -> None:
    assert (parts_of(name), path_of(name)) == ((name, ""), None)


def test_a_ledger_of_house_rules_is_its_backends() -> None:
    assert parts_of("torch:compile+java") == ("torch:compile", "java")
    assert parts_of("tvm:llvm,mattr=+f16c+java") == ("tvm:llvm,mattr=+f16c", "java")
