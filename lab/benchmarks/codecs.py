"""Judge the planted codecs on all float32 inputs, and print a row of Markdown for each.

python -m lab.benchmarks.codecs [FUNCTION…]
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

from conformance.extras.codec.answers import ask_all
from conformance.extras.codec.judging import judge_codec
from conformance.extras.codec.target import target_named
from specs.ruling import ruling
from tests.conformance.extras.codec.planted_codecs import PLANTED, Planted


def main() -> None:
    """Print a row for each planted codec, or for those that are named."""
    print("| codec | findings | wrong | inputs | seconds | of processors |")
    print("|---|---|---|---|---|---|")
    for each in PLANTED:
        if not sys.argv[1:] or each.function in sys.argv[1:]:
            print(row(each), flush=True)


def row(planted: Planted) -> str:
    """Judge one codec and return its row; the times include compiling and finding causes."""
    begin, before = perf_counter(), processor_seconds()
    case = planted.case("float32")
    with TemporaryDirectory() as folder:
        target, jobs = target_named(planted.target), os.cpu_count() or 1
        answers = ask_all(
            target, ruling(case), None, 10.0, jobs, Path(folder), lambda *_: lambda more: None
        )
    judged = judge_codec(case, answers)
    seconds, used = perf_counter() - begin, processor_seconds() - before
    says = "; ".join(each.says for each in judged.findings)
    names = tuple(sorted(each.name for each in judged.findings))
    mark = "" if names == planted.findings else f" **{names}**"
    wrong = sum(each.inputs for each in judged.findings)
    return (
        f"| `{planted.function}` | {says}{mark} | {wrong:,} | {answers.asked:,} | {seconds:.1f}"
        f" | {used:.1f} |"
    )


def processor_seconds() -> float:
    """The processor time of this process and its children."""
    used = os.times()
    return used.user + used.system + used.children_user + used.children_system


if __name__ == "__main__":
    main()
