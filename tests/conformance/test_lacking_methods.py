"""A backend without the method for an operation is not asked for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from conformance.pair import judge_pair
from specs.selection import select
from tests.conformance.feeding import answering, feed, planted


@pytest.mark.parametrize(
    ("document", "method", "reason"),
    [
        ("onnx-bitcast", "bitcast", "planted has no bitcast"),
        ("onnx-quantize-linear", "quantize", "planted does not quantize"),
        ("mx-blocks", "quantize", "planted does not quantize"),
    ],
)
def test_no_tensor_is_made_for_a_method_that_is_lacking(
    document: str, method: str, reason: str
) -> None:
    case = select([document])[0]
    subject = replace(planted(), offers=lambda name: name != method)
    asked: list[Any] = []
    [found] = feed(judge_pair(subject, [case]), answering(), asked)
    assert (found.verdict, found.message) == ("unsupported", reason)
    assert not asked


@pytest.mark.parametrize("document", ["onnx-quantize-linear", "mx-blocks"])
def test_who_declines_the_first_and_the_last_listed_tensor_is_asked_no_others(
    document: str,
) -> None:
    case = next(each for each in select([document]) if each.mode.get("form", "tensor") == "tensor")
    asked: list[Any] = []
    [found] = feed(judge_pair(planted(), [case]), answering(), asked)
    assert (found.verdict, found.message) == ("unsupported", "planted has no quantize")
    assert len(asked) == 2
