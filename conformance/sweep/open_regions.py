"""What backends do on all open inputs from float32 to integers: each of 2^32 patterns is looked at.

Writes a page. The report explains what a run has kept, the inputs of the tier ``quick``.
"""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby, product
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from conformance.judging.quick_inputs import quick_inputs
from conformance.running.selection import case_named
from oracles.protocol import Bits, Unsupported
from oracles.reference.chunk_table import ANYTHING, table
from oracles.registry import load_backend
from reports.behaviors import tally_numba
from reports.behaviors.explanation import explain, narrow, sentence
from reports.behaviors.tally import BehaviorSearch, Tally, behavior_search, tally_answers
from specs.cases import Case
from specs.formats import formats
from specs.release import VERSION
from specs.ruling import Ruling, ruling

BACKENDS = ("torch", "ort", "onnx", "ml_dtypes")
CHUNK = 1 << 20
VECTOR = 64
"""No row ends within so many elements: the code for its tail may answer otherwise."""
INTRODUCTION = """\
# Behaviours on every input

Written by `tox -e behaviours`, not by hand. Of every cast from float32 to an integer in
`onnx-cast:25`, all inputs that the document leaves open were asked, in rows of whole vectors.
[behaviours.md](behaviours.md) says how the form is found that is right on each of them.
"""


@dataclass(frozen=True)
class Region:
    """What was found of one pair on one backend."""

    backend: str
    version: str
    said: tuple[str, ...]


def main(arguments: Sequence[str] | None = None) -> None:
    """Look at all open inputs, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", action="append", help=f"(default: {', '.join(BACKENDS)})")
    parser.add_argument("--target", action="append", help="(default: every integer)")
    parser.add_argument("--page", type=Path, required=True)
    parser.add_argument("--jobs", type=int, default=2)
    wanted = parser.parse_args(arguments)
    targets = wanted.target or [name for name, form in formats().items() if form.kind == "integer"]
    asked = list(product(wanted.backend or BACKENDS, targets))
    found = []
    with ProcessPoolExecutor(wanted.jobs, get_context("spawn")) as pool:
        for region in pool.map(region_of, *zip(*asked, strict=True)):
            found.append(region)
            print(region.backend, *region.said, sep="\n  ", file=sys.stderr, flush=True)
    wanted.page.write_text("\n".join(_lines(found)), encoding="utf-8")


def region_of(name: str, target: str) -> Region:
    """All open inputs to a target on a backend."""
    backend, case = load_backend(name), case_named(f"onnx-cast:25/float32/{target}")
    try:
        found = whole(backend.oracle, case)
    except Unsupported as reason:
        return Region(name, backend.version, (f"float32→{target} is not offered: {reason}",))
    return Region(name, backend.version, tuple(sentence(found, line) for line in explain(found)))


def whole(oracle: Any, case: Case) -> Tally:
    """The tally of all open inputs of a case, by the forms that the telling ones leave."""
    rules = ruling(case)
    every = behavior_search(rules.source, rules.target, rules.rounding)
    few = np.concatenate([*_telling(rules, case)])
    found = _all(oracle, case, narrow(tally_answers(every, few, _answers(oracle, case, few))))
    if all(line.behavior for line in explain(found)):
        return found
    # A form that was dropped may still explain a part of what no other does.
    return _all(oracle, case, every)


def _all(oracle: Any, case: Case, asked: BehaviorSearch) -> Tally:
    found = Tally(asked)
    for first, end in _open_ranges(ruling(case)):
        for start in range(first, end, CHUNK):
            inputs = np.arange(start, min(start + CHUNK, end), dtype=np.uint64)
            inputs = inputs.astype(asked.source.storage)
            answers = _answers(oracle, case, inputs)
            found = found.merged(tally_numba.tally_answers(asked, inputs, answers))
    return found


def _telling(rules: Ruling, case: Case) -> Iterator[Bits]:
    """The quick tier's inputs that are open."""
    inputs = quick_inputs(case.source, case.target, 0, 1000)
    for first, end in _open_ranges(rules):
        yield inputs[(inputs >= first) & (inputs < end)]


def _open_ranges(rules: Ruling) -> list[tuple[int, int]]:
    known = table(rules)
    ends = np.append(known.firsts[1:], np.uint64(1 << rules.source.bits))
    here = known.kinds == ANYTHING
    return list(zip(known.firsts[here].tolist(), ends[here].tolist(), strict=True))


def _answers(oracle: Any, case: Case, inputs: Bits) -> Bits:
    """The answers, in a row of whole vectors."""
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
            yield from (f"- {said}" for said in region.said)
    yield ""


if __name__ == "__main__":
    main()
