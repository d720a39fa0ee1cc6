"""What a case is about: a cast, a call, a bitcast, or tensors with names."""

from __future__ import annotations

from specs.cases import Case
from specs.loader import document_named
from specs.model.document import Operation

NAMED_TENSORS: tuple[Operation, ...] = (
    "quantize", "dequantize", "dynamic-quantize", "block-quantize", "block-dequantize",
)  # fmt: skip
"""The operations that take and return tensors by name."""


def operation_of(case: Case) -> Operation:
    """Return the operation of a case of a shipped document, such as `cast` or `bitcast`."""
    return document_named(case.document).entry.operation


def is_cast(case: Case) -> bool:
    """Whether a case is a cast, or a call that makes one: each element alone has a ruling."""
    return operation_of(case) in ("cast", "call")


def takes_named_tensors(case: Case) -> bool:
    """Whether a case takes and returns tensors by name, as quantization and blocks do."""
    return operation_of(case) in NAMED_TENSORS


def is_of_blocks(case: Case) -> bool:
    """Whether a case quantizes or dequantizes blocks that share a scale."""
    return operation_of(case) in ("block-quantize", "block-dequantize")


def is_bitcast(case: Case) -> bool:
    """Whether a case of a shipped document is a bitcast: its shape is judged, not its values."""
    return operation_of(case) == "bitcast"
