"""Test values for the members of a receiver, and whether a call converts a member rightly."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from conformance.judging.values import departure, wrong_dtype
from oracles.adapters.calls import ones
from oracles.backend.replies import stored
from oracles.protocol import Bits, Tensor
from oracles.reference.expect_by_exact import expect
from reports.counterexample.drawing import datum_text
from reports.grading.allowed_answers import ALLOWED, NOT_ALLOWED, grade_answers
from reports.grading.divergences import datum_of
from reports.problems import BrokenPromise
from specs.cases import Call, Case
from specs.formats import format_named
from specs.ruling import ruling

ROWS_KEPT = 256
WHOLE = (1, 2, 3, 100)
"""The integers that members hold; as bools, all of them are true."""


@lru_cache(ROWS_KEPT)
def telling_bits(dtype: str, shape: tuple[int, ...]) -> Bits:
    """Return a read-only tensor that repeats a few values of a dtype; only false is zero.

    They are values that most dtypes have.
    """
    one, entry = ones(dtype, (1,)), format_named(dtype)
    match entry.kind:
        case "float":
            unit, binade = entry.one_code, 1 << entry.entry.mantissa
            codes = [unit, unit + binade, unit + binade // 2, unit | entry.sign_bit]
            row = np.array(codes, entry.storage)
        case "integer":
            row = np.array(WHOLE, entry.storage)
        case "boolean":
            row = np.array([1, 0], entry.storage)
        case _:
            row = one
    filled: Bits = np.resize(row, shape)
    filled.flags.writeable = False
    return filled


def telling_members(call: Call, shape: tuple[int, ...]) -> dict[str, Bits]:
    """Return a tensor of ``telling_bits`` for each member of a call's receiver, by name."""
    return {member.name: telling_bits(member.dtype, shape) for member in call.members}


def wrong_conversion(
    case: Case,
    bits: Bits,
    found: Mapping[str, Tensor],
    name: str,
    where: str,
    is_other: bool = True,
) -> BrokenPromise | None:
    """Return what is wrong about the member ``name`` that ``case`` converts; None if nothing is.

    ``bits`` are what the member held before the call, ``found`` the members after it. ``where``
    describes the tensor. If ``is_other``, a case about another member is judged, and a wrong dtype
    is a broken promise about other members. If the document leaves the dtype open, nothing is
    checked; if only the values, just the dtype. Raises ``Unanswered`` if the member's bits are
    malformed.
    """
    rules = ruling(case)
    if rules.is_open_dtype:
        return None
    if name not in found:
        return departure(case, "member", (name or "tensor",), where)
    tensor = found[name]
    if tensor.dtype != case.target and is_other:
        return departure(case, "other member", (name, tensor.dtype, case.target), where)
    if tensor.dtype != case.target:
        return departure(case, *wrong_dtype(case, tensor), where)
    if rules.is_open:
        return None
    after = stored(rules.target, tensor.bits)
    if after.shape != bits.shape:
        shapes = name or "tensor", str(after.shape), str(bits.shape)
        return departure(case, "member's shape", shapes, where)
    inputs, answers = bits.reshape(-1), after.reshape(-1)
    # A long tensor repeats a few values, and the definition takes its time for each.
    values, place_of = np.unique(inputs, return_inverse=True)
    expected = expect(rules, values).at(place_of)
    grades = grade_answers(rules, inputs, expected, answers)
    if (grades == ALLOWED).all():
        return None
    at = int(np.flatnonzero(grades != ALLOWED)[0])
    branch = rules.branches[int(expected.branch_indices[at])]
    given = datum_text(rules.source, datum_of(inputs[at]))
    pair = (datum_text(rules.target, datum_of(each[at])) for each in (answers, expected.codes))
    level = branch.level if grades[at] == NOT_ALLOWED else "recommended"
    facts = name or "tensor", given, *pair
    return BrokenPromise(branch.rule, branch.clause, level, "member's value", facts, where)
