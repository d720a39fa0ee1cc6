"""A refusal of a case with open values is an error only if the document requires an answer."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.feeding import answering, judged


def refuse(*_: Any) -> Any:
    raise TypeError("not permitted")


@pytest.mark.parametrize(
    ("case", "verdict"),
    [
        ("array-api-astype:2025.12/complex64/bool", "error"),
        ("array-api-astype:2025.12/bool/complex128", "error"),
        ("array-api-astype:2025.12/float32/complex64", "open"),
        ("numpy-astype:2.4/float32/complex64/casting:safe", "error"),
        ("numpy-astype:2.4/float32/complex64/casting:same_value", "open"),
    ],
)
def test_a_refusal_where_values_are_open(case: str, verdict: str) -> None:
    assert judged(case, answering(cast=refuse)).verdict == verdict
