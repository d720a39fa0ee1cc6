"""``castigate containers``: the matrix, the findings, exit codes, and what is stored with a run."""

from __future__ import annotations

import json
from pathlib import Path
from unittest.mock import patch

import jsonschema
import pytest

from conformance.extras.containers import results
from conformance.extras.containers.parties.parties import TEXT
from tests.conformance.processes import castigate

DATA = "tests/conformance/data/planted_parties.py"
SWAPPED = f"{DATA}:PairsSwapped"
PAIRS = ("--container=onnx-raw", "--dtype=i4", "--dtype=uint8")


def test_a_changed_tensor_is_shown_and_fails(tmp_path: Path) -> None:
    files = (f"--json={tmp_path / 'c.json'}", f"--page={tmp_path / 'c.md'}")
    code, out, err = castigate("containers", "text", SWAPPED, *PAIRS, *files)
    assert (code, err) == (1, "")
    lines = [line.rstrip() for line in out.splitlines()]
    start = lines.index(f"onnx-raw: {SWAPPED} reads: the first element is taken from the high bits")
    assert lines[start + 1 : start + 5] == [
        "    dtypes    int4",
        f"    ways      text, {SWAPPED} to {SWAPPED}",
        "    written   int4[1] 0x0d (row of 1)",
        "    read      int4[1] 0x00",
    ]
    assert lines[-1] == "parties: 2, 1 container, 1 finding; 2 of 8 ways of a dtype change it"
    found = json.loads((tmp_path / "c.json").read_text())
    _, schema, _ = castigate("containers", "schema")
    jsonschema.validate(found, json.loads(schema))
    assert {each["outcome"] for each in found["ways"]} == {"identical", "changed"}
    page = (tmp_path / "c.md").read_text()
    assert "| below 8 bits | text | 1= | 1! |" in page


def test_the_texts_alone_change_nothing() -> None:
    code, out, err = castigate("containers", "text", *PAIRS)
    assert (code, err) == (0, "")
    assert "  below 8 bits  text        1=\n" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nump",), "unknown party `nump`; did you mean `numpy`? the parties are text, numpy"),
        (("text", "--container=np"), "unknown container `np`; did you mean `npz`? the containers"),
        (("text", "--dtype=string"), "--dtype string: containers hold no texts"),
        (("text", "--run=nowhere"), "nowhere"),
    ],
)
def test_a_mistake_is_one_line(arguments: tuple[str, ...], message: str) -> None:
    code, out, err = castigate("containers", *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1


def test_a_run_keeps_it_and_its_report_shows_it(tmp_path: Path) -> None:
    run, site = str(tmp_path / "run"), tmp_path / "site"
    asked = ("--backend=reference", "--document=onnx-cast:25", "--source=int4", "--target=bool")
    asked += ("--jobs=1",)
    assert castigate("run", *asked, f"--out={run}")[0] == 0
    castigate("report", run, f"--out={site}")
    assert not (site / "containers.html").exists()
    castigate("containers", "text", SWAPPED, *PAIRS, f"--run={run}")
    assert castigate("report", run, f"--out={site}")[0] == 0
    page = (site / "containers.html").read_text()
    assert "the first element is taken from the high bits" in page
    assert 'href="containers.html"' in (site / "index.html").read_text()
    (tmp_path / "run" / "containers.json").write_text('{"date": 1}')
    code, _, err = castigate("report", run, f"--out={site}")
    assert code == 2
    assert "containers.json cannot be read" in err


def test_a_night_asks_the_installed_parties(tmp_path: Path) -> None:
    asked = (
        "--backend=reference",
        "--document=cinn-bitcast-calls",
        "--with=containers",
        "--jobs=1",
    )
    with patch.object(results, "installed_parties", lambda: [TEXT]):
        code, _, err = castigate("nightly", f"--out={tmp_path}", *asked)
    assert (code, "error" in err) == (0, False)
    [kept] = (tmp_path / "runs").glob("*/containers.json")
    assert [*json.loads(kept.read_text())["versions"]] == [TEXT]
    assert "<h2 id=" in (tmp_path / "report" / "containers.html").read_text()
