"""The lab's prices and worths of kinds of tensors: a kind that is left out is really not asked."""

from __future__ import annotations

import pytest

from conformance.families.cast import invariances
from lab.probe_worth import KINDS, _in_process, _is_killed, _without

REFUSAL = "always-zero+after-a-refusal@onnx-cast:24/float32/float16"


def test_kinds_name_functions_of_the_check() -> None:
    named = [function for functions in KINDS.values() for function in functions]
    assert len({*named}) == len(named)
    assert all(callable(getattr(invariances, each)) for each in named)


@pytest.mark.parametrize("kind", ["other casts before", "draws"])
def test_a_mutant_survives_without_the_kind_that_finds_it(kind: str) -> None:
    [is_killed] = _in_process(_without(kind), _is_killed, [REFUSAL])
    assert is_killed == (kind != "other casts before")
