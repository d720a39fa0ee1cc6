"""``castigate board``: the site of runs, of failed ones, and of what others report."""

from __future__ import annotations

import json
import re
import shutil
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import jsonschema
import pytest

from conformance.extras.board.asked import asked_pairs
from conformance.extras.board.board_file import Board
from reports.gate.canonical_json import canonical_bytes
from reports.gate.certificate import with_digest, without_seals
from tests.conformance.processes import castigate
from tests.conformance.test_gate_command import gate, vendor
from tests.html.planted import STARTED, Elements, planted_run

DATA = "tests/conformance/data/saturating.py"
CLAMPS = f"{DATA}:Saturating"
DAY = str(int((STARTED + timedelta(days=1)).timestamp()))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The board of a backend that clamps and of the reference, asked two pairs."""
    folder = tmp_path_factory.mktemp("board")
    asked = ("--document=onnx-cast:25", "--source=float32", "--target=int8", "--target=int32")
    backends = [f"--backend={each}" for each in (CLAMPS, "reference")]
    castigate("run", *backends, *asked, "--jobs=1", f"--out={folder / 'run'}")
    code, out, err = castigate("board", str(folder / "run"), f"--out={folder / 'site'}")
    assert (code, err) == (0, "")
    assert re.fullmatch(r".*index\.html: 2 backends, 2 versions, board\.json [\d,]+ bytes\n", out)
    return folder / "site"


def content(site: Path) -> Board:
    data = (site / "board.json").read_bytes()
    jsonschema.validate(json.loads(data), json.loads((site / "board.schema.json").read_text()))
    return Board.model_validate_json(data)


def front(site: Path) -> str:
    return (site / "index.html").read_text()


def test_a_cell_is_the_word_that_the_run_holds(site: Path) -> None:
    """300 of float32 becomes 127 of int8 where it is clamped."""
    board = content(site)
    place = [*asked_pairs()].index(("float32", "int8"))
    [clamps, _] = board.rows
    answer = clamps.answers[place]
    assert answer is not None
    assert (answer.word, answer.case) == ("clamps", "onnx-cast:25/float32/int8")
    assert sum(each is not None for each in clamps.answers) == 2
    cells = re.findall(r'<a class="answer v-conforms".*?title="([^"]*)">(.*?)</a>', front(site))
    shown = {(title, " ".join(Elements(cell).text.split())) for title, cell in cells}
    assert ("onnx-cast:25/float32/int8: conforms", "· clamps: conforms") in shown


def test_a_blank_is_no_number(site: Path) -> None:
    text = Elements(front(site)).text
    assert "%" not in text
    assert len(re.findall(r"<td data-row=\"\d\"></td>", front(site))) == 2 * (20 - 2)


def test_nothing_is_loaded_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*.*"):
        text = file.read_text("utf-8")
        loaded = re.findall(r"""(?:src|srcset|action)=["']?(\w+:[^"'\s>]*)""", text)
        assert loaded == [], file


def test_the_schema_is_printed(site: Path) -> None:
    code, out, err = castigate("board", "schema")
    assert (code, err) == (0, "")
    assert out == (site / "board.schema.json").read_text()


def test_a_failed_run_shows_the_age_of_the_last_good_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = planted_run(tmp_path / "good", document="pypto-cast")
    failed = planted_run(tmp_path / "failed", after=1, complete=False)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", DAY)
    assert castigate("board", good, failed, f"--out={tmp_path / 'site'}")[0] == 0
    text = Elements(front(tmp_path / "site")).text
    assert text.count("the run of 2026-01-03 failed: the run did not end") == 3
    assert text.count("2026-01-02") >= 6
    assert "%" not in text
    badge = json.loads((tmp_path / "site" / "badges" / "vendor-fast.json").read_text())
    assert badge["message"].endswith("2026-01-02")


def test_a_large_board_json_is_told(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "run", document="pypto-cast")
    with patch("conformance.extras.board.command.MOST_BYTES", 1000):
        code, _, err = castigate("board", run, f"--out={tmp_path / 'site'}")
    assert code == 0
    assert re.fullmatch(
        r"castigate: board\.json has [\d,]+ bytes, more than 1,000; give fewer versions\n", err
    )


def test_runs_without_an_answer_make_no_board(tmp_path: Path) -> None:
    run = planted_run(tmp_path / "run", complete=False)
    code, out, err = castigate("board", run, f"--out={tmp_path / 'site'}")
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "castigate: no backend answered anything in these runs; there is nothing to show"
    ]
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--out=SITE",), "no run is given; name folders of runs, such as nights/runs/*"),
        (("RUN",), "--out is missing; give the folder of the site"),
        (("--reported=gates", "--out=SITE"), "`gates` names nobody; write NAME=GATE"),
        (("nowhere", "--out=SITE"), "nowhere is no run: it holds no run.json"),
    ],
)
def test_a_wrong_call_is_one_line(tmp_path: Path, arguments: tuple[str, ...], message: str) -> None:
    given = [each.replace("SITE", str(tmp_path / "site")) for each in arguments]
    code, out, err = castigate("board", *given)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert message in err


@pytest.fixture(scope="module")
def gated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("gated")
    assert gate(folder, vendor(folder))[0] == 0
    return folder / "gate"


def test_a_row_from_outside_says_who_reported_it(gated: Path, tmp_path: Path) -> None:
    out = f"--out={tmp_path / 'site'}"
    code, _, err = castigate("board", f"--reported=acme={gated}", out)
    assert (code, err) == (0, "")
    [row] = content(tmp_path / "site").rows
    assert row.reported is not None
    certificate = json.loads((gated / "certificate.json").read_text())
    assert row.reported.model_dump() == {
        "by": "acme",
        "certificate": certificate["digest"],
        "signer": "",
        "result": "pass",
    }
    # The run has the whole path of the adapter's file.
    assert row.backend == "vendor.py:Vendor"
    assert str(gated.parent) not in front(tmp_path / "site")
    text = Elements(front(tmp_path / "site")).text
    assert "reported by acme" in text
    assert "signed by nobody" in text


@pytest.mark.parametrize("forged", ["certificate", "run", "verdict"])
def test_a_forged_row_is_refused(gated: Path, tmp_path: Path, forged: str) -> None:
    """Its certificate is altered, or its run is, or both so that only the answers tell."""
    copied = tmp_path / "gate"
    shutil.copytree(gated, copied)
    certificate = copied / "certificate.json"
    if forged == "certificate":
        text = certificate.read_text()
        certificate.write_text(text.replace('"result": "pass"', '"result": "fail"'))
    elif forged == "run":
        table = copied / "run" / "cases.parquet"
        table.write_bytes(table.read_bytes().replace(b"conforms", b"violates"))
    else:
        certificate.write_bytes(resealed(certificate))
    code, out, err = castigate("board", f"--reported=acme={copied}", f"--out={tmp_path / 'site'}")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert not (tmp_path / "site").exists()
    told = {
        "certificate": "certificate.json was altered: its digest does not match its content",
        "run": "run/cases.parquet",
        "verdict": "certificate.json does not match its run: verdicts",
    }
    assert told[forged] in err


def resealed(certificate: Path) -> bytes:
    """Return a certificate with better counts of verdicts, and a digest that fits them."""
    body = without_seals(json.loads(certificate.read_text()))
    body["verdicts"] = {name: {"conforms": 999} for name in body["verdicts"]}
    return canonical_bytes(with_digest(body))
