"""Judges recorded arrays of an operation whose tensors have names, part by part.

A layer of a model has millions of elements, and what is expected of one takes many times the memory
of its code. So tensors are cut where that changes no verdict, and the verdicts on parts are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from conformance.families import tensors_of
from conformance.families.named_tensors import (
    formats_given,
    formats_returned,
    in_shape,
    judge_tensors,
)
from oracles.protocol import Bits
from reports.findings.finding_text import datum_words
from reports.grading.divergences import index_of_simplest
from specs.cases import Case, Shape
from specs.errors import CastigateError
from specs.loader import document_named
from specs.operations import X, Y

MOST_AT_ONCE = 1 << 18
"""About the most elements of a part."""
SEVERITY = ("open", "conforms", "deviates", "violates")
"""The verdicts on parts; the worst of them is that on the whole, and any other hides `open`."""


class TensorPart(NamedTuple):
    """A part of recorded tensors, and where it begins: at an element in a row, or at a row."""

    tensors: Mapping[str, Bits]
    answer: Mapping[str, Bits]
    start: int = 0
    is_flat: bool = False

    def place(self, of_part: list[int], shape: Shape) -> list[int]:
        """Return the index in the whole tensor, of ``shape``, of an element of the part."""
        if self.is_flat:
            return [int(each) for each in np.unravel_index(of_part[0] + self.start, shape)]
        return [of_part[0] + self.start, *of_part[1:]] if of_part else []


def checked_arrays(
    case: Case, arrays: Mapping[str, Bits]
) -> tuple[dict[str, Bits], dict[str, Bits]]:
    """Return the tensors that a case takes, and those that it returns, in the shapes that it wants.

    Raise CastigateError if one is missing, or has another shape.
    """
    given, returned = formats_given(case), formats_returned(case)
    brings = tensors_of(case)
    wanted = [*given, *returned]
    if missing := {*wanted} - {*brings.optional(case)} - arrays.keys():
        raise CastigateError(
            f"there is no array `{min(missing)}`; the arrays of {case.id} are {', '.join(wanted)}"
        )
    x = arrays[X]
    if not x.size:
        raise CastigateError("`x` has no elements; give at least one")
    shapes = dict(brings.shapes(case, x.shape))
    if not document_named(case.document).entry.tensors:
        shapes[Y] = [x.shape]  # Elsewhere another shape of y breaks a rule.
    fitting = {
        name: in_shape(bits, shapes[name], name, is_list=True) if name in shapes else bits
        for name, bits in arrays.items()
    }
    return (
        {name: fitting[name] for name in given if name in fitting},
        {name: fitting[name] for name in returned},
    )


def judge_arrays(
    case: Case, tensors: Mapping[str, Bits], answer: Mapping[str, Bits]
) -> dict[str, Any]:
    """Return what ``judge_tensors`` does, without the tensors of what is allowed.

    The tensors must be as ``checked_arrays`` returns them.
    """
    x = tensors[X]
    if answer[Y].shape != x.shape:
        return judge_tensors(case, tensors, answer)
    joined: dict[str, Any] = {}
    totals = dict.fromkeys(("elements", "wrong", "open"), 0)
    shown: list[dict[str, Any]] = []
    for part in _parts(case, tensors, answer):
        found = judge_tensors(case, part.tensors, part.answer, has_allowed=False)
        totals = {name: count + found[name] for name, count in totals.items()}
        if element := found.get("element"):
            element["index"] = part.place(element["index"], x.shape)
        rank = SEVERITY.index(found["verdict"])
        worst = SEVERITY.index(joined["verdict"]) if joined else -1
        if rank > worst:
            joined, shown = found, []
        if rank >= worst and element:
            shown.append(found)
    if shown:
        codes = [int(each["element"].get(X, "0x0"), 16) for each in shown]
        form = formats_given(case)[X]
        among = np.ones(len(codes), np.bool_)
        joined = shown[index_of_simplest(form, np.array(codes, form.storage), among)]
    return joined | totals


def _parts(
    case: Case, tensors: Mapping[str, Bits], answer: Mapping[str, Bits]
) -> Iterator[TensorPart]:
    x, cut = tensors[X], tensors_of(case).cut(case)
    if x.size <= MOST_AT_ONCE or cut == "nowhere" or (cut == "between rows" and x.ndim < 2):
        yield TensorPart(tensors, answer)
        return
    every = {**tensors, **answer}
    if cut == "anywhere":
        # There is one scale, whatever the shape is.
        every = {name: bits.reshape(-1) for name, bits in every.items()}
        step, cuts = MOST_AT_ONCE, {X, Y}
    else:
        step = max(1, MOST_AT_ONCE // (x.size // x.shape[0]))
        cuts = {
            name
            for name, bits in every.items()
            if bits.ndim == x.ndim and bits.shape[0] == x.shape[0]
        }
    for start in range(0, len(every[X]), step):
        part = {
            name: bits[start : start + step] if name in cuts else bits
            for name, bits in every.items()
        }
        given, returned = ({name: part[name] for name in names} for names in (tensors, answer))
        yield TensorPart(given, returned, start, is_flat=cut == "anywhere")


class ElementWords(NamedTuple):
    """A wrong element in words: its inputs, its place in the result, what came, what is allowed."""

    inputs: str
    place: str
    got: str
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.place} of {self.inputs} is {self.got}, not {' or '.join(self.allowed)}"


def element_words(case: Case, element: Mapping[str, Any]) -> ElementWords:
    """Return the words for a wrong ``element`` as ``judge_tensors`` has it."""
    given, returned = formats_given(case), formats_returned(case)
    inputs = ", ".join(
        f"{name} {datum_words({**returned, **given}.get(name, given[X]).name, word)}"
        for name, word in element.items()
        if name not in ("result", "index", "output", "allowed")
    )
    result = returned[element["result"]].name
    return ElementWords(
        inputs or "x",
        f"{element['result']}[{', '.join(map(str, element['index']))}]",
        datum_words(result, element["output"]) if "output" in element else "an error",
        tuple(datum_words(result, each) for each in element["allowed"]),
    )
