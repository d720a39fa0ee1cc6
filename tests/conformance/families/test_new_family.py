"""A new family is one module, one document, and its row in the table of families.

A house is built beside the checkout, out of links to it, and the family put in. No other file of
the house changes.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.processes import MAIN, ROOT, SECONDS_TO_END

NEW = Path(__file__).with_name("new_family")
CASE = "plain-copy:1/float32/float32"
BACKEND = f"{NEW / 'adapter.py'}:LosesSubnormals"
END_OF_TABLE = ")\n" + '"""All families.'
ROW = """\
    Family(
        ("copy",),
        judge="conformance.families.copy:judge",
        explain="conformance.families.copy:explain",
        lines="conformance.families.copy:CopyLines",
        cases="conformance.families.copy:cases",
        rules="conformance.families.copy:rules",
        says="conformance.families.copy:says",
        followed="conformance.families.copy:followed",
        methods={"copy": "Bits"},
    ),
"""


def _link_all_but(changed: str, checkout: Path, house: Path) -> None:
    """Link what lies in a folder, but for one folder in it, which is made anew."""
    house.mkdir()
    for each in checkout.iterdir():
        if each.name != changed:
            (house / each.name).symlink_to(each)


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A house with the family "copy"."""
    house = tmp_path_factory.mktemp("house")
    for name in ("oracles", "reports"):
        (house / name).symlink_to(ROOT / name)
    for layer, folder, changed in (
        ("conformance", "families", "__init__.py"),
        ("specs", "documents", ""),
    ):
        _link_all_but(folder, ROOT / layer, house / layer)
        _link_all_but(changed, ROOT / layer / folder, house / layer / folder)
    (house / "specs/documents/plain_copy.yaml").symlink_to(NEW / "plain_copy.yaml")
    families = house / "conformance/families"
    (families / "copy.py").symlink_to(NEW / "copy.py")
    table = (ROOT / "conformance/families/__init__.py").read_text()
    assert table.count(END_OF_TABLE) == 1
    (families / "__init__.py").write_text(table.replace(END_OF_TABLE, ROW + END_OF_TABLE))
    return house


def castigate(house: Path, *arguments: str, given: str = "") -> tuple[int, str]:
    """Run a command of the house; return its exit code, and what it printed."""
    environment = os.environ | {"PYTHONPATH": f"{house}{os.pathsep}{ROOT}"}
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *arguments],
        cwd=house,
        env=environment,
        input=given,
        capture_output=True,
        text=True,
        timeout=SECONDS_TO_END,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def run(house: Path) -> Path:
    """A run of the backend, which the command ends with 1."""
    out = house / "run"
    code, printed = castigate(
        house, "run", "--backend", BACKEND, "--document", "plain-copy", "--out", str(out)
    )
    assert code == 1, printed
    return out


def test_a_fault_becomes_a_finding_with_its_sentence(house: Path, run: Path) -> None:
    code, printed = castigate(house, "findings", str(run), "--json")
    assert code == 1, printed
    finding = json.loads(printed)
    assert finding["id"] == f"{BACKEND}/changes-bits"
    assert finding["finding"] == "copies give other bits"
    assert [each["case"] for each in finding["cases"]] == [CASE]


def test_the_report_shows_the_cases(house: Path, run: Path) -> None:
    code, printed = castigate(house, "report", str(run), "--out", str(house / "html"))
    assert code == 0, printed
    assert "copies give other bits" in (house / "html/index.html").read_text()


def test_explain_asks_the_backend(house: Path) -> None:
    asked = ["explain", CASE, "--backend", BACKEND, "--json", "--", "1.5", "0x00000001"]
    code, printed = castigate(house, *asked)
    assert code == 0, printed
    told = json.loads(printed)
    assert told["allowed"] == ["0x3fc00000", "0x00000001"]
    assert list(told["answers"].values()) == [["0x3fc00000", "0x00000000"]]


def test_judge_reads_recorded_copies(house: Path) -> None:
    lines = [
        json.dumps({"case": CASE, "input": "0x00000001", "output": output})
        for output in ("0x00000001", "0x00000000")
    ]
    code, printed = castigate(house, "judge", "-", given="\n".join(lines))
    assert code == 1, printed
    assert re.findall('"verdict": "([a-z]+)"', printed) == ["conforms", "violates"]


def test_the_checkout_knows_no_copies() -> None:
    """Else the tests above would say nothing of the house that they build."""
    assert not (ROOT / "conformance/families/copy.py").exists()
