"""The page and the command count what was proved, and list what was not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from lab.proof import __main__ as command
from lab.proof.obligations import Obligation
from lab.proof.page import write_page

PROVED = Obligation(
    "solver", "float32", "float16", "nearest-even", "onnx-cast:1/float32/float16 and 2 more",
    "exact integers", "proved", "2^32", 0.5,
)  # fmt: skip
WRONG = replace(PROVED, mode="odd", verdict="counterexample", found="0x33000000: 1, not 0")
LATE = replace(PROVED, source="int8", statement="smt-lib", verdict="open")
SWEPT = replace(PROVED, half="exhaustion", statement="by definition", inputs="4,294,967,296")


def written_page(tmp_path: Path, *obligations: Obligation) -> str:
    path = tmp_path / "proof.md"
    write_page(obligations, path)
    return path.read_text(encoding="utf-8")


def test_the_page_says_that_everything_is_proved(tmp_path: Path) -> None:
    text = written_page(tmp_path, PROVED, SWEPT)
    assert text.count("| proved | 1 |") == 2
    assert text.count("Nothing is open and nothing contradicted.") == 2
    assert "## By an SMT solver" in text
    assert "## By exhaustion" in text
    assert "| float16 | nearest-even | exact integers | 2^32 | 1 proved | 0.5 |" in text
    assert "| float16 | nearest-even | by definition | 4,294,967,296 | 1 proved | 0.5 |" in text


def test_the_page_lists_every_obligation_that_is_not_proved(tmp_path: Path) -> None:
    text = written_page(tmp_path, LATE, PROVED, WRONG)
    assert "| counterexample | 1 |" in text
    assert "| open | 1 |" in text
    assert (
        "- **counterexample**: float32 to float16, odd, exact integers"
        " (onnx-cast:1/float32/float16 and 2 more): 0x33000000: 1, not 0"
    ) in text
    assert "- **open**: int8 to float16, nearest-even, smt-lib" in text
    assert "Nothing is open" not in text
    assert "## By exhaustion" not in text
    assert "| 1 proved, 1 counterexample |" in text


def test_a_part_that_was_not_proved_again_stays_as_it_was(tmp_path: Path) -> None:
    before = written_page(tmp_path, PROVED, SWEPT)
    ordered = replace(PROVED, half="order", statement="order of values", inputs="2^64 pairs")
    with_order = written_page(tmp_path, ordered)
    assert (
        with_order.replace(with_order[with_order.index("## The order") :], "")
        == before[: before.index("## By exhaustion")]
    )
    assert with_order.endswith(before[before.index("## By exhaustion") :])
    assert "| 2^64 pairs | 1 proved |" in with_order
    again = written_page(tmp_path, WRONG)
    assert "- **counterexample**: float32" in again
    assert again[again.index("## The order") :] == with_order[with_order.index("## The order") :]


@pytest.mark.parametrize(("last", "code"), [(PROVED, 0), (WRONG, 1), (LATE, 1)])
def test_the_command_exits_with_0_only_if_everything_is_proved(
    last: Obligation,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def prove(
        jobs: int, time_limit: float, report: Callable[[Obligation], None]
    ) -> list[Obligation]:
        assert (jobs, time_limit) == (2, 7.0)
        report(last)
        return [PROVED, last]

    path = tmp_path / "page.md"
    arguments = ["--solver", "--jobs", "2", "--timeout", "7", "--page", str(path)]
    monkeypatch.setattr("sys.argv", ["proof", *arguments])
    monkeypatch.setattr(command, "prove_by_solver", prove)
    with pytest.raises(SystemExit) as ended:
        command.app()
    assert ended.value.code == code
    assert last.name in capsys.readouterr().out
    assert path.exists()


@pytest.mark.parametrize(
    ("arguments", "halves"),
    [
        ([], ["solver", "order", "quantization", "exhaustion"]),
        (["--solver"], ["solver"]),
        (["--order"], ["order"]),
        (["--quantization"], ["quantization"]),
        (["--exhaustion"], ["exhaustion"]),
        (["--solver", "--exhaustion"], ["solver", "exhaustion"]),
    ],
)
def test_the_options_select_the_halves_to_prove(
    arguments: list[str], halves: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    proved: list[str] = []

    def prove_half(half: str) -> Callable[..., list[Obligation]]:
        return lambda *_: proved.append(half) or [PROVED]

    monkeypatch.setattr("sys.argv", ["proof", *arguments])
    monkeypatch.setattr(command, "prove_by_solver", prove_half("solver"))
    monkeypatch.setattr(command, "prove_order", prove_half("order"))
    monkeypatch.setattr(command, "prove_quantization", prove_half("quantization"))
    monkeypatch.setattr(command, "prove_by_exhaustion", prove_half("exhaustion"))
    with pytest.raises(SystemExit) as ended:
        command.app()
    assert ended.value.code == 0
    assert proved == halves
