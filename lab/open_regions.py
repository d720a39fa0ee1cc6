"""Write a page on what backends do on every open input of the casts from float32 to integers.

The report explains only the inputs of the tier ``quick``; this asks all 2^32 patterns.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, product
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from conformance.families.cast.quick_inputs import quick_inputs
from lab import tally_numba
from lab.tallies import merged, narrow, tally_answers
from oracles.protocol import Bits, Unsupported
from oracles.registry import load_backend
from reports.behaviors.explanation import explain, sentence
from reports.behaviors.tally import BehaviorSearch, Tally, behavior_search
from reports.grading.chunk_table import ANYTHING, table
from specs import VERSION
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import formats
from specs.ruling import ruling
from specs.selection import case_named

BACKENDS = ("torch", "ort", "onnx", "ml_dtypes")
CHUNK = 1 << 20
VECTOR = 64
"""Rows are multiples of this length, because the code for a row's tail may answer differently."""
INTRODUCTION = """\
# Behaviors on every input

Written by `tox -e behaviors`, not by hand. Of every cast from float32 to an integer in
`onnx-cast:25`, all inputs that the document leaves open were asked, in rows of whole vectors.
[findings.md](../findings.md#how-behaviors-are-found) says how the form is found that is right on
each of them.
"""


@dataclass(frozen=True)
class Region:
    """Describes a backend's answers to the open inputs of one pair."""

    backend: str
    version: str
    sentences: tuple[str, ...]


app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__
)


@app.command()
def main(
    page: Annotated[Path, typer.Option(help="the page to write")],
    backend: Annotated[
        list[str] | None, typer.Option(help=f"repeatable (default: {', '.join(BACKENDS)})")
    ] = None,
    target: Annotated[
        list[str] | None, typer.Option(help="repeatable (default: every integer)")
    ] = None,
    jobs: Annotated[int, typer.Option(help="processes")] = 2,
) -> None:
    """Ask all open inputs, and write the page."""
    targets = target or [name for name, form in formats().items() if form.kind == "integer"]
    pairs = list(product(backend or BACKENDS, targets))
    found = []
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for region in pool.map(region_of, *zip(*pairs, strict=True)):
            found.append(region)
            print(region.backend, *region.sentences, sep="\n  ", file=sys.stderr, flush=True)
    page.write_text("\n".join(_lines(found)), encoding="utf-8")


def region_of(name: str, target: str) -> Region:
    """Ask a backend all open inputs of the cast from float32 to a target; describe its answers."""
    backend, case = load_backend(name), case_named(f"onnx-cast:25/float32/{target}")
    try:
        found = whole(backend.oracle, case)
    except Unsupported as reason:
        return Region(name, backend.version, (f"float32→{target} is not offered: {reason}",))
    pair = f"{case.source}→{case.target}"
    sentences = tuple(f"{pair}, {sentence(found, line)}" for line in explain(found))
    return Region(name, backend.version, sentences)


def whole(oracle: Any, case: Case) -> Tally:
    """Tally the answers to all open inputs of a case, by the behaviors that explain them.

    Behaviors are dropped that fail on the quick tier's inputs, unless one of these is needed.
    """
    rules = ruling(case)
    every = behavior_search(rules.source, rules.target, rules.rounding)
    few = np.concatenate([*_quick_open_inputs(rules, case)])
    found = _all(oracle, case, narrow(tally_answers(every, few, _answers(oracle, case, few))))
    if all(line.behavior for line in explain(found)):
        return found
    # A behavior that was dropped may still explain what no other does.
    return _all(oracle, case, every)


def _all(oracle: Any, case: Case, asked: BehaviorSearch) -> Tally:
    found = Tally(asked, {}, {})
    for first, end in _open_ranges(ruling(case)):
        for start in range(first, end, CHUNK):
            inputs = np.arange(start, min(start + CHUNK, end), dtype=np.uint64)
            inputs = inputs.astype(asked.source.storage)
            answers = _answers(oracle, case, inputs)
            found = merged(found, tally_numba.tally_answers(asked, inputs, answers))
    return found


def _quick_open_inputs(rules: Ruling, case: Case) -> Iterator[Bits]:
    """Yield the quick tier's inputs in each open range of a ruling."""
    inputs = quick_inputs(case.source, case.target, 0, 1000)
    for first, end in _open_ranges(rules):
        yield inputs[(inputs >= first) & (inputs < end)]


def _open_ranges(rules: Ruling) -> list[tuple[int, int]]:
    known = table(rules)
    ends = np.append(known.firsts[1:], np.uint64(1 << rules.source.bits))
    here = known.kinds == ANYTHING
    return list(zip(known.firsts[here].tolist(), ends[here].tolist(), strict=True))


def _answers(oracle: Any, case: Case, inputs: Bits) -> Bits:
    """Ask the inputs in a row that is padded to whole vectors; return the answers to them alone."""
    row = np.concatenate([inputs, np.resize(inputs[-1:], -inputs.size % VECTOR)])
    answers: Bits = oracle.cast(case, row)
    return answers[: inputs.size]


def _lines(found: Sequence[Region]) -> Iterator[str]:
    yield INTRODUCTION
    today = datetime.now(UTC).date().isoformat()
    python = platform.python_version()
    yield f"{today}, castigate {VERSION}, Python {python}, {platform.machine()}."
    for (name, version), regions in groupby(found, lambda each: (each.backend, each.version)):
        yield from ("", f"## {name} {version}", "")
        for region in regions:
            yield from (f"- {each}" for each in region.sentences)
    yield ""


if __name__ == "__main__":
    app()
