"""The reference and the documents agree with a model that was written from the pages alone."""

from __future__ import annotations

import pytest

from lab.page_model.__main__ import comparisons, is_known
from lab.page_model.kinds import Kinds, Verdict, relation
from lab.page_model.onnx import DYNAMIC, quantize

IN_THE_SUITE = 6_000
COMPARISONS = dict(comparisons(IN_THE_SUITE))


@pytest.mark.parametrize("name", COMPARISONS)
def test_the_pages_alone(name: str) -> None:
    kinds = Kinds()
    COMPARISONS[name](kinds)
    assert kinds.compared >= IN_THE_SUITE // 4
    assert [text for kind, text in kinds.examples.items() if not is_known(kind)] == []


def test_a_fault_is_found() -> None:
    """A reference that adds the zero point before it rounds contradicts the page."""
    half, one, zero = 0x3F000000, 0x3F800000, 1
    answer = quantize(DYNAMIC, half, one, zero)
    assert answer.admitted == frozenset({1})
    assert relation(answer, Verdict(frozenset({2}), frozenset({2}), False)) == "CONTRADICTION"
    assert not is_known("CONTRADICTION | integer")
