"""Compare which answers two checkouts of the documents allow, and print every change as a table.

``python -m benchmarks.migration --before CHECKOUT`` asks the suite in another checkout, in a
process of its own, what every case allows for every input of the quick tier, and compares that
with this checkout. An answer breaks nothing, a recommended rule, or a required rule. A change is
narrower where more answers break something, and wider where fewer do.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

Set = tuple[Any, ...]
"""The answers that are allowed: ``("all",)``, ``("nan", sign)``, ``("codes",)`` with the codes in
arrays beside it, ``("code", one)``, or the word for an outcome that is compared as a whole."""
ALL: Set = ("all",)


@dataclass
class Told:
    """One checkout's ruling of a case: sets and rule of each branch, branch of each input."""

    key: str
    rules: list[str]
    levels: list[str]
    required: list[Set]
    allowed: list[Set]
    inputs: Any = ()
    branch_indices: Any = None
    codes: Any = None
    others: Any = None


def told(name: str, known: frozenset[str]) -> Told:
    """Return this checkout's ruling of a case, without its arrays if the key is known."""
    from conformance.kinds.quick_inputs import inputs_of
    from specs.operations import is_bitcast
    from specs.ruling import ruling
    from specs.selection import case_named

    case = case_named(name)
    if is_bitcast(case):
        return _told_of_bitcast(case)
    rules = ruling(case)
    branches = rules.branches
    pairs = [_sets(branch) for branch in branches]
    key = repr(
        (case.source, case.target, rules.rounding, rules.worked, case.example,
         [(b.input_class, b.outcome, b.level, b.rule, b.recommended) for b in branches])
    )  # fmt: skip
    found = Told(
        key,
        [branch.rule for branch in branches],
        [branch.level for branch in branches],
        [required for required, _ in pairs],
        [allowed for _, allowed in pairs],
    )
    if key in known:
        return found
    inputs = inputs_of(case, rules, 0, 1000)
    found.inputs = inputs
    expected = _expected(rules, inputs)
    found.branch_indices, found.codes, found.others = (
        expected.branch_indices,
        expected.codes,
        expected.others,
    )
    return found


def _expected(rules: Any, inputs: Any) -> Any:
    from oracles.reference import expect_by_exact, expect_by_kernels
    from oracles.reference.expectations import Expected

    if rules.is_open or rules.is_rejection:
        nothing = np.zeros(inputs.shape, np.uint8)
        return Expected(nothing, nothing, nothing)
    if rules.worked or not (rules.source.is_numeric and rules.target.is_numeric):
        return expect_by_exact.expect(rules, inputs)
    return expect_by_kernels.expect(rules, inputs)


def _sets(branch: Any) -> tuple[Set, Set]:
    """The answers that break no required rule, and those that break no rule at all."""
    whole, part = _set(branch.outcome), _set(branch.outcome)
    if branch.recommended is not None:
        part = _set(branch.recommended)
        if part == ("codes",):
            part = ("code", branch.recommended.code)
    match branch.level:
        case "required":
            return whole, part
        case "recommended":
            return ALL, part
    return ALL, ALL


def _set(outcome: Any) -> Set:
    kind = type(outcome).__name__
    match kind:
        case "Anything":
            return ALL
        case "Nan":
            return ("nan", outcome.sign)
        case "Exactly" | "Round" | "Value" | "Wrap" | "Same" | "Either":
            return ("codes",)
    return (repr(outcome),)


def _told_of_bitcast(case: Any) -> Told:
    from specs.bitcast_ruling import bitcast_ruling

    reading = bitcast_ruling(case)
    rule, level = reading.rule, "unspecified" if reading.is_open else reading.level
    demanded, options = [], []
    while reading is not None and not reading.is_open:
        shape = ("error",) if reading.is_rejection else ("shape", reading.result)
        bits_level = getattr(reading, "bits_level", level) if reading.keeps_bits else ""
        options.append((*shape, "bits") if bits_level else shape)
        demanded.append((*shape, "bits") if bits_level == "required" else shape)
        reading = getattr(reading, "alternative", None)
    allowed: Set = ("one of", *options) if options else ALL
    required: Set = ("one of", *demanded) if level == "required" else ALL
    places = np.zeros(1, np.uint8)
    # The shape is part of the key: each case is its own.
    return Told(case.id, [rule], [level], [required], [allowed], places, places, places, places)


# The other checkout, asked through a pipe.


def serve() -> None:
    """Answer names of cases until the pipe is closed."""
    known: set[str] = set()
    reader, writer = sys.stdin.buffer, sys.stdout.buffer
    while True:
        try:
            request = pickle.load(reader)
        except EOFError:
            return
        try:
            answer = told(request, frozenset(known)) if request else _all_cases()
        except Exception as error:  # a case that this checkout does not have
            answer = error
        if isinstance(answer, Told):
            known.add(answer.key)
        pickle.dump(answer, writer)
        writer.flush()


def _all_cases() -> list[str]:
    from specs.editions import editions
    from specs.loader import documents

    return [
        case.id
        for document in documents().values()
        for edition in editions(document)
        for case in edition.cases()
    ]


class Other:
    """The suite of another checkout, in a process of its own."""

    def __init__(self, checkout: Path) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=checkout,
        )
        self._known: dict[str, Told] = {}

    def ask(self, request: str) -> Any:
        """Its answer; arrays that were sent before are remembered."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        pickle.dump(request, self._process.stdin)
        self._process.stdin.flush()
        answer = pickle.load(self._process.stdout)
        if isinstance(answer, Told):
            return self._known.setdefault(answer.key, answer)
        return answer


# Comparing


@dataclass
class Tally:
    """The differences between the two encodings of one document."""

    cases: int = 0
    inputs: int = 0
    before: Counter[str] = field(default_factory=Counter)
    after: Counter[str] = field(default_factory=Counter)
    changes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    examples: dict[tuple[str, str, str], str] = field(default_factory=dict)
    open_cases: Counter[str] = field(default_factory=Counter)
    added: int = 0
    removed: list[str] = field(default_factory=list)


def on_common_inputs(before: Told, after: Told) -> tuple[Told, Told]:
    """Both on the inputs that both ask: the quick tier asks next to where a rule changes."""
    if np.array_equal(before.inputs, after.inputs):
        return before, after
    _, *picked = np.intersect1d(before.inputs, after.inputs, return_indices=True)
    return tuple(
        replace(
            one,
            inputs=one.inputs[here],
            branch_indices=one.branch_indices[here],
            codes=one.codes[here],
            others=one.others[here],
        )
        for one, here in zip((before, after), picked, strict=True)
    )


def compared(before: Told, after: Told) -> Iterator[tuple[str, str, str, int]]:
    """Change, rule before, rule after, and how many inputs; also those that stay as they are."""
    before, after = on_common_inputs(before, after)
    pairs, counts = np.unique(
        np.stack([before.branch_indices, after.branch_indices]), axis=1, return_counts=True
    )
    for (was, now), count in zip(pairs.T.tolist(), counts.tolist(), strict=True):
        here = (before.branch_indices == was) & (after.branch_indices == now)
        kinds = {
            _relation(
                old[was], new[now], _codes(before, old[was], here), _codes(after, new[now], here)
            )
            for old, new in ((before.required, after.required), (before.allowed, after.allowed))
        }
        yield _change(kinds), before.rules[was], after.rules[now], count


def _change(kinds: set[str]) -> str:
    kinds -= {"same"}
    if not kinds:
        return "same"
    return kinds.pop() if len(kinds) == 1 else "other"


Codes = list[Any]
"""Two codes for each input, which may be the same."""


def _codes(told_by: Told, allowed: Set, here: Any) -> Codes:
    if allowed[0] == "code":
        return [np.full(int(here.sum()), allowed[1], object)] * 2
    return [np.asarray(each)[here].astype(object) for each in (told_by.codes, told_by.others)]


def _relation_of_codes(old: Codes, new: Codes) -> str:
    inside = all(((each == old[0]) | (each == old[1])).all() for each in new)
    around = all(((each == new[0]) | (each == new[1])).all() for each in old)
    if inside and around:
        return "same"
    return "narrower" if inside else "wider" if around else "other"


def _covers(wide: Set, narrow: Set) -> bool:
    """Whether a shape allows all that another one does; one may ask for the bits as well."""
    return wide == narrow or (narrow[-1] == "bits" and wide == narrow[:-1])


def _relation(was: Set, now: Set, old: Codes, new: Codes) -> str:
    """Whether a set is the same, narrower, wider, or another one."""
    if was[0] in ("codes", "code") and now[0] in ("codes", "code"):
        return _relation_of_codes(old, new)
    if was == now:
        return "same"
    if was == ALL:
        return "narrower"
    if now == ALL:
        return "wider"
    if was[0] == now[0] == "nan":
        return "narrower" if was[1] == "any" else "wider"
    if was[0] == now[0] == "one of":
        inside = all(any(_covers(old, new) for old in was[1:]) for new in now[1:])
        around = all(any(_covers(new, old) for new in now[1:]) for old in was[1:])
        return "narrower" if inside else "wider" if around else "other"
    return f"{was[0]} to {now[0]}"


def main() -> None:
    """Print the table, or write it to a page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.migration", description=__doc__)
    parser.add_argument("--before", type=Path, help="a checkout of the documents as they were")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--document", action="append", help="only this document (repeatable)")
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    if given.before is None:
        parser.error("--before CHECKOUT is missing")
    tallies: dict[str, Tally] = {}
    other = Other(given.before)
    old_names = set(other.ask(""))
    ours: dict[str, Told] = {}
    seen: dict[tuple[str, str], list[tuple[str, str, str, int]]] = {}
    for name in _all_cases():
        document = name.partition(":")[0]
        if given.document and document not in given.document:
            continue
        tally = tallies.setdefault(document, Tally())
        if name not in old_names:
            tally.added += 1
            continue
        old_names.discard(name)
        before, after = other.ask(name), told(name, frozenset(ours))
        if isinstance(before, Exception):
            raise before
        after = ours.setdefault(after.key, after)
        tally.cases += 1
        tally.inputs += after.inputs.size
        for told_by, levels in ((before, tally.before), (after, tally.after)):
            counts = np.bincount(told_by.branch_indices, minlength=len(told_by.levels))
            for level, count in zip(told_by.levels, counts.tolist(), strict=True):
                levels[level] += count
        for at, told_by in (("before", before), ("after", after)):
            tally.open_cases[at] += all(each == ALL for each in told_by.allowed)
        key = (before.key, after.key)
        if key not in seen:
            seen[key] = list(compared(before, after))
        for change, was, now, count in seen[key]:
            tally.changes[change, was, now] += count
            if change != "same":
                tally.examples.setdefault((change, was, now), name)
    for name in sorted(old_names):
        document = name.partition(":")[0]
        if document in tallies:
            tallies[document].removed.append(name)
    for line in page(tallies):
        print(line)


def page(tallies: dict[str, Tally]) -> Iterator[str]:
    """The tables, in Markdown."""
    yield "| document | cases | inputs | required | recommended | open | cases wholly open |"
    yield "|---|---|---|---|---|---|---|"
    for document, tally in tallies.items():
        cells = [
            f"{tally.before[level]:,} → {tally.after[level]:,}"
            for level in ("required", "recommended", "unspecified")
        ]
        opened = f"{tally.open_cases['before']:,} → {tally.open_cases['after']:,}"
        row = (document, f"{tally.cases:,}", f"{tally.inputs:,}", *cells, opened)
        yield f"| {' | '.join(row)} |"
    for document, tally in tallies.items():
        yield ""
        yield f"## {document}"
        yield ""
        kinds: Counter[str] = Counter()
        for (change, _, _), count in tally.changes.items():
            kinds[change] += count
        counted = ", ".join(f"{count:,} {change}" for change, count in sorted(kinds.items()))
        yield f"Inputs: {counted}. Cases added: {tally.added}, removed: {len(tally.removed)}."
        yield ""
        yield "| change | rule before | rule after | inputs | for example |"
        yield "|---|---|---|---|---|"
        for key, count in sorted(tally.changes.items()):
            if key[0] != "same":
                yield f"| {' | '.join(key)} | {count:,} | {tally.examples[key]} |"


if __name__ == "__main__":
    main()
