"""The files of vectors: each distinct table of answers once, with all cases that it is about."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np

from conformance.extras.vectors.ieee_flags import flag_rows, inputs_at_tininess
from conformance.extras.vectors.index import (
    DecidingRule,
    LeftOut,
    VectorFile,
    VectorIndex,
    VectorKind,
)
from conformance.extras.vectors.intervals import (
    CastIntervals,
    IntervalRows,
    Untold,
    disagreements,
    intervals_of,
    joined,
)
from conformance.extras.vectors.tensors import TensorFile
from conformance.extras.vectors.vector_text import FORMAT, Vectors, as_c_header, as_text
from conformance.families.cast.quick_inputs import few_inputs
from oracles.reference.exact import Infinity, NotANumber, decode
from oracles.reference.exact_text import exact_decimal
from reports.suite_digest import suite_digest
from specs import VERSION
from specs.branches import Ruling
from specs.cases import Case
from specs.formats import EXHAUSTIVE_BITS, Format, format_named
from specs.ruling import ruling

IEEE = "ieee-casts"
"""The yardstick that says which conversions raise flags."""
FLAGGED = 4096
"""About the most inputs of a wide source whose flags are told."""
NOT_NUMBERS = "not between numbers"
OPEN = "open for every input"
REFUSED = "to be refused for every input"
EXACT, KERNELS = "exact", "kernels"


@dataclass
class VectorFolder:
    """A folder that is being filled with files of vectors, and the index of it.

    ``limit`` is the most lines of a cast that cannot be told of every input. ``with_headers`` says
    whether each file has a C header beside it.
    """

    folder: Path
    limit: int
    with_headers: bool
    _files: dict[str, VectorFile] = field(default_factory=dict)
    _paths: dict[str, str] = field(default_factory=dict)
    _left_out: dict[str, list[str]] = field(default_factory=dict)

    def add_casts(self, cases: Iterable[Case], jobs: int) -> None:
        """Write what casts may answer, and their flags; those that answer alike share a file.

        If there are many, they are computed by ``jobs`` processes; the files do not depend on it.
        """
        alike: dict[Hashable, list[Case]] = {}
        for case in sorted(cases, key=lambda case: (case.source, case.target)):
            rules = ruling(case)
            if not (rules.source.is_numeric and rules.target.is_numeric) or case.example:
                self.leave_out(NOT_NUMBERS, case)
            elif rules.is_open or rules.is_rejection:
                self.leave_out(OPEN if rules.is_open else REFUSED, case)
            else:
                is_flagged = case.document == IEEE
                alike.setdefault((rules.meaning, is_flagged), []).append(case)
        groups = [*alike.values()]
        for told, group in zip(_tell(groups, self.limit, jobs), groups, strict=True):
            if isinstance(told, str):
                for case in group:
                    self.leave_out(told, case)
                continue
            self._write_rows("casts", group, told.answers)
            if told.flags is not None:
                self._write_rows("flags", group, told.flags)

    def add_values(self, form: Format) -> None:
        """Write the value of each code of a float format of at most eight bits."""
        codes = range(1 << form.bits)
        lines = [f"{code:0{form.hex_digits}x} {value_of(form, code)}" for code in codes]
        head = f"vectors {FORMAT} values {form.name} {form.bits} {len(lines)}"
        content = ("\n".join([head, *lines]) + "\n").encode()
        about = VectorFile(
            file=f"values/{form.name}.txt",
            sha256="",
            kind="values",
            source=form.name,
            source_bits=form.bits,
            covers="all",
            lines=len(lines),
        )
        self.write(about, content)

    def add_tensors(self, tensors: TensorFile) -> None:
        """Write the small tensors of a document, and note which of its cases have none."""
        for why, cases in tensors.left_out.items():
            self._left_out.setdefault(why, []).extend(cases)
        if tensors.records:
            about = VectorFile(
                file=tensors.path,
                sha256="",
                kind="tensors",
                lines=tensors.records,
                cases=[*tensors.cases],
                agreed=[EXACT, KERNELS],
            )
            self.write(about, tensors.content)

    def leave_out(self, why: str, case: Case) -> None:
        """Note that a case has no file."""
        self._left_out.setdefault(why, []).append(case.id)

    def write(self, about: VectorFile, content: bytes) -> None:
        """Write a file's content, and enter the file into the index."""
        path = self.folder / about.file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        digest = sha256(content).hexdigest()
        self._files[about.file] = about.model_copy(update={"sha256": digest})

    def index(self) -> VectorIndex:
        """Return the index of all files written so far."""
        left_out = [LeftOut(why=why, cases=cases) for why, cases in sorted(self._left_out.items())]
        files = [self._files[name] for name in sorted(self._files)]
        return VectorIndex(
            vectors=FORMAT, castigate=VERSION, suite=suite_digest(), files=files, left_out=left_out
        )

    def _write_rows(self, kind: VectorKind, cases: Sequence[Case], table: VectorTable) -> None:
        """Write a table of cases, or add them to the file that has the same."""
        case, rules = cases[0], ruling(cases[0])
        answer = ("flags", 8) if kind == "flags" else (rules.target.name, rules.target.bits)
        pair = f"{rules.source.name} {rules.target.name}"
        content = f"{kind} {pair} {table.is_whole}".encode() + table.rows.tobytes()
        key = sha256(content).hexdigest()
        if (written := self._paths.get(key)) is not None:
            self._files[written].cases.extend(each.id for each in cases)
            return
        path = self._paths[key] = f"{kind}/{path_of(case)}.txt"
        notes = [f"by {case.id}, castigate {VERSION}"]
        if kind == "flags":
            notes.append(f"of {pair}: 1 inexact, 2 underflow, 4 overflow, 8 by zero, 16 invalid")
        told = CastIntervals(rules, *table)
        open_inputs = told.open_inputs() if kind == "casts" else 0
        if open_inputs:
            notes.append(f"open, so that any answer is right: {open_inputs:,} inputs")
        refuses = kind == "casts" and rules.refuses_some
        if refuses:
            notes.append("some inputs must be refused; they stand as open")
        vectors = Vectors(rules.source, answer, *table, notes)
        about = VectorFile(
            file=path,
            sha256="",
            kind=kind,
            source=rules.source.name,
            source_bits=rules.source.bits,
            target=rules.target.name,
            target_bits=answer[1],
            covers="all" if table.is_whole else "some",
            lines=table.rows.size,
            open=open_inputs,
            refuses=refuses,
            cases=[each.id for each in cases],
            rules=_deciding_rules(rules) if kind == "casts" else [],
            agreed=[EXACT, KERNELS] if kind == "casts" else [EXACT],
        )
        self.write(about, as_text(vectors))
        if self.with_headers:
            header = (self.folder / path).with_suffix(".h")
            header.write_bytes(as_c_header(vectors, re.sub(r"\W", "_", path_of(case))))


class VectorTable(NamedTuple):
    """Rows of inputs and allowed answers, and whether together they cover every input."""

    rows: IntervalRows
    is_whole: bool


class Told(NamedTuple):
    """The tables of one cast: allowed answers, and exception flags if the document defines them."""

    answers: VectorTable
    flags: VectorTable | None = None


MANY = 32
"""So many casts are computed by several processes, which take seconds to start."""


def _tell(groups: Sequence[Sequence[Case]], limit: int, jobs: int) -> Iterator[Told | str]:
    """Yield for the first case of each group what it may answer, or why that cannot be told."""
    firsts = [group[0] for group in groups]
    tell = partial(tell_cast, limit=limit)
    if jobs == 1 or len(firsts) < MANY:
        yield from map(tell, firsts)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(tell, firsts, chunksize=8)


def tell_cast(case: Case, limit: int) -> Told | str:
    """Return what a cast may answer, and its flags; the reason if that cannot be told.

    The kernels must agree with the definition on both ends of each row.
    """
    rules = ruling(case)
    try:
        told = intervals_of(case, rules, limit)
    except Untold as reason:
        return str(reason)
    wrong = [*disagreements(told)]
    assert not wrong, f"{case}: exact and kernels differ at {wrong[0]:#x}"
    answers = VectorTable(told.rows, told.is_whole)
    return Told(answers, _flags_of(case, rules) if case.document == IEEE else None)


def path_of(case: Case) -> str:
    """Return a path for the file of a case: document and version, the dtypes, and the mode."""
    mode = "_".join(f"{name}-{value}" for name, value in case.modes) or "cast"
    return f"{case.document}-{case.version}/{case.source}/{case.target}/{mode}"


def _deciding_rules(rules: Ruling) -> list[DecidingRule]:
    named = dict.fromkeys((branch.rule, branch.level) for branch in rules.branches)
    return [DecidingRule(rule=rule, level=level) for rule, level in named]


def _flags_of(case: Case, rules: Ruling) -> VectorTable:
    """Return the flags of every input of a source of up to 16 bits, and of some of a wider one."""
    source, target = rules.source, rules.target
    is_whole = source.bits <= EXHAUSTIVE_BITS
    inputs = (
        np.arange(1 << source.bits, dtype=np.uint64)
        if is_whole
        else np.union1d(few_inputs(case, rules, FLAGGED), inputs_at_tininess(source, target))
    )
    return VectorTable(joined(flag_rows(source, target, rules.rounding, inputs), 0xFF), is_whole)


def value_of(form: Format, code: int) -> str:
    """Return the value of a code as an exact decimal number, `inf` or `nan`, with its sign."""
    match decode(form, code):
        case NotANumber():
            return "nan"
        case Infinity(sign=sign):
            return "-inf" if sign else "inf"
        case number:
            decimal = exact_decimal(number.significand, number.exponent)
            return f"-{decimal}" if number.sign else decimal


def small_formats(cases: Iterable[Case]) -> Iterator[Format]:
    """Yield each float format of at most eight bits that a case has, in the order of names."""
    names = {name for case in cases for name in (case.source, case.target)}
    for form in map(format_named, sorted(names)):
        if form.kind == "float" and form.bits <= 8:
            yield form
