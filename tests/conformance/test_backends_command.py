"""``castigate backends``: what is here, and how to get what is not."""

from __future__ import annotations

import json

import pytest

from oracles.registry import BUILTINS
from tests.conformance.processes import RUNNABLE, castigate

HOSTILE = "tests/conformance/data/hostile.py"


def seen(*arguments: str) -> list[dict[str, object]]:
    code, out, err = castigate("backends", "--json", *arguments)
    assert (code, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def test_a_backend_is_told_with_all_that_it_offers() -> None:
    [found] = seen("ml_dtypes")
    assert (found["name"], found["reason"], found["claims"]) == ("ml_dtypes", None, [])
    assert found["operations"] == ["cast", "bitcast"]
    assert {"float32", "float8e8m0", "int4", "string"} <= set(found["dtypes"])  # type: ignore[call-overload]
    assert found["smoke"] == {}


def test_variants_are_named_and_can_be_asked() -> None:
    [whole, variant] = seen("torch", "torch:view")
    assert whole["variants"] == list(BUILTINS["torch"].variants)
    assert (variant["name"], variant["variants"]) == ("torch:view", [])


def test_who_changes_bits_is_told_by_dtype() -> None:
    [found] = seen(f"{HOSTILE}:ChangesOnTheWay")
    assert list(found["smoke"]) == ["float16"]  # type: ignore[call-overload]
    assert set(found["smoke"]) <= set(found["dtypes"])  # type: ignore[call-overload]


@pytest.mark.parametrize("name", ["cinn", "pypto"])
def test_what_no_index_has_says_how_it_is_had(name: str) -> None:
    [found] = seen(name)
    assert found["version"] is None
    assert str(found["reason"]).startswith("is not installed: ")


def test_who_cannot_be_loaded_is_a_line_among_others() -> None:
    code, out, err = castigate("backends", f"{RUNNABLE}:SegfaultsLoading", "reference")
    assert (code, err) == (0, "")
    first, second, *_ = out.splitlines()
    assert first.startswith(f"{RUNNABLE}:SegfaultsLoading: was ended by SIGSEGV")
    assert second.startswith("reference ")
