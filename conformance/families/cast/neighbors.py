"""Requests that come between two rows of a pair: casts of other pairs, and a bitcast of its own.

A run asks pair after pair, so a backend that keeps something under a key without the dtype (a
compiled kernel, a buffer, an answer) never shows it: its first request about a pair replaces what
it kept. Here a row of another pair, of the same shape and width where there is one, comes
immediately before a row of the pair itself; and a bitcast of the pair, of a row of the same shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from zlib import crc32

import numpy as np

from conformance.families import tensor_of
from conformance.families.cast.baseline import Baseline
from conformance.judging.probe import Probe, ProbePlan
from oracles.backend.requests import Cast, Request
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import Format, format_named
from specs.ruling import ruling
from specs.selection import first_cases

SHORTEST, STEP = 72, 8
"""The rows have lengths of their own, so that each is the first of its shape. Those of bitcasts fit
elements of all widths; those of casts have a rest behind the last whole vector."""
SOURCES_KEPT = 64
MOST_BITS = 64
"""Bits of the widest numbers; their neighbors are narrower sources instead of wider ones."""


def neighbors(case: Case, is_full: bool) -> list[Case]:
    """Return casts of the same edition to request before a row of ``case``.

    They have another source or target of the same width, or a wider source of the same kind (for
    one of 64 bits a narrower), or the same source and must be refused. At the tier full these are
    all such cases; at the tier quick one of each kind, which the case's id chooses.
    """
    known = first_cases(case.document, case.version).values()
    source, target = format_named(case.source), format_named(case.target)
    others = [
        [each for each in known if each.target == case.target and _is_other(source, each.source)],
        [each for each in known if each.source == case.source and _is_other(target, each.target)],
        [each for each in known if each.target == case.target and _is_wider(source, each.source)],
    ]
    refused = _refused(case.document, case.version, case.source)
    if is_full:
        return [each for kind in (*others, refused) for each in kind]
    number = crc32(case.id.encode())
    found = [_first_answered(kind, number) for kind in others]
    found.append(refused[number % len(refused)] if refused else None)
    return [each for each in found if each is not None]


@lru_cache(SOURCES_KEPT)
def _refused(document: str, version: str, source: str) -> tuple[Case, ...]:
    known = first_cases(document, version).values()
    return tuple(each for each in known if each.source == source and ruling(each).is_rejection)


def _first_answered(cases: Sequence[Case], number: int) -> Case | None:
    """Return the first case from place ``number`` on that need not be refused; None if all must.

    The places go round: after the last case comes the first.
    """
    start = number % len(cases) if cases else 0
    turned = (*cases[start:], *cases[:start])
    return next((each for each in turned if not ruling(each).is_rejection), None)


def _is_other(own: Format, name: str) -> bool:
    other = format_named(name)
    return other != own and other.bits == own.bits


def _is_wider(own: Format, name: str) -> bool:
    """Whether a format of ``own``'s kind is wider, or narrower if ``own`` has 64 bits."""
    other = format_named(name)
    is_like = own.is_numeric and other.kind == own.kind
    return is_like and (other.bits > own.bits or own.bits == MOST_BITS > other.bits)


def cast_words(case: Case) -> str:
    """Return the words ``a cast of SOURCE to TARGET``, as descriptions of probes have them."""
    return f"a cast of {case.source} to {case.target}"


def in_turn(
    row: Baseline, casts: Sequence[Case], shaped: Sequence[Case]
) -> list[tuple[Request, ProbePlan]]:
    """Return each neighbor's request, and the plan of the row that comes right after it.

    ``casts`` get the patterns of that row, as far as their sources hold them. ``shaped`` are cases
    of operations on one tensor of any shape; they get that row itself.
    """
    count = row.inputs.size
    turns: list[tuple[Request, ProbePlan]] = []
    for number, case in enumerate((*casts, *shaped)):
        functions = tensor_of(case)
        words = "a bitcast to the same dtype" if functions else cast_words(case)
        shape = (SHORTEST + STEP * number + (0 if functions else 1),)
        probe = Probe(shape, number % count, after=words)
        bits = probe.tensor(row.inputs)
        before: Request = Cast(case, held_by(case, bits))
        if functions is not None:
            before = functions.request(case, bits)
        turns.append((before, ProbePlan.of([probe], count)))
    return turns


def held_by(case: Case, bits: Bits) -> Bits:
    """Return patterns in the storage of a case's source, without bits that it lacks."""
    source = format_named(case.source)
    storage = np.dtype(source.storage)
    if bits.dtype == storage:
        return bits & storage.type(source.mask) if source.is_numeric else bits
    held: Bits = (bits.astype(np.uint64) & np.uint64(source.mask)).astype(storage)
    return held
