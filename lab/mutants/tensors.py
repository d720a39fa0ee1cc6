"""Faults of a tensor as a whole: its shape, its order, its memory, and caches of answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from lab.mutants.fault import Past, Replaces, TensorFault
from oracles.protocol import Bits

CAUSES = ("changes-with-layout", "raises-*", "malformed", "shape-*", "unexplained")


def faults() -> Iterator[TensorFault]:
    """Yield the faults of whole tensors."""
    for name, replaces in TENSORS.items():
        causes = (name,) if replaces is _writes_to_inputs else CAUSES
        yield TensorFault(name, "whole tensors", replaces, causes)


def _cached(key: Callable[[Bits], Any]) -> Replaces:
    """Return a fault that reuses the answers to an earlier tensor of the same shape and key."""

    def answered(bits: Bits, right: Bits, past: Past) -> Any:
        kept = past.kept.setdefault((bits.shape, key(bits.reshape(-1))), right)
        return kept if kept.shape == right.shape else right

    return answered


def overwritten(bits: Bits, right: Bits, past: Past) -> Any:
    """Return views of one buffer, which the next call overwrites."""
    buffer = past.kept.setdefault("buffer", np.zeros(1 << 20, np.uint64))
    view = buffer.view(right.dtype)[: right.size]
    view[:] = right.reshape(-1)
    return view.reshape(right.shape)


def _overwritten_later(bits: Bits, right: Bits, past: Past) -> Any:
    """Return views of two buffers in turn, so that the next call but one overwrites an answer."""
    past.kept["turn"] = turn = 1 - past.kept.get("turn", 0)
    buffer = past.kept.setdefault(turn, np.zeros(1 << 20, np.uint64))
    view = buffer.view(right.dtype)[: right.size]
    view[:] = right.reshape(-1)
    return view.reshape(right.shape)


def _planned_by_shape(bits: Bits, right: Bits, past: Past) -> Any:
    """Read a matrix in the order in which the first one of its shape lay in memory."""
    is_turned = bits.ndim == 2 and bits.flags.f_contiguous and not bits.flags.c_contiguous
    if bits.ndim != 2 or not (is_turned or bits.flags.c_contiguous):
        return right
    if past.kept.setdefault(bits.shape, is_turned) == is_turned:
        return right
    if is_turned:
        return right.flatten("F").reshape(right.shape)
    return right.flatten().reshape(right.shape[::-1]).T


def _sorted(bits: Bits, right: Bits, past: Past) -> Any:
    return np.sort(right.reshape(-1), kind="stable").reshape(right.shape)


def _raises_without_elements(bits: Bits, right: Bits, past: Past) -> Any:
    if not bits.size:
        raise ValueError("the tensor has no elements")
    return right


def _runs_out_of_memory(bits: Bits, right: Bits, past: Past) -> Any:
    if not bits.size and max(bits.shape, default=0) > 1000:
        raise MemoryError("no room")
    return right


def _writes_to_inputs(bits: Bits, right: Bits, past: Past) -> Any:
    if bits.size:
        bits.flags.writeable = True
        bits.reshape(-1)[:1] = 0
    return right


TENSORS: dict[str, Replaces] = {
    "flattens": lambda bits, right, past: right.reshape(-1),
    "flattens-empty-tensors": lambda bits, right, past: right if right.size else right.reshape(-1),
    "flattens-no-element-in-the-middle": lambda bits, right, past: (
        right.reshape(-1) if 0 in bits.shape[1:-1] else right
    ),
    "adds-a-dimension-to-scalars": lambda bits, right, past: (
        right if right.ndim else right[np.newaxis]
    ),
    "turns-matrices": lambda bits, right, past: right.T if right.ndim == 2 else right,
    "turns-square-matrices": lambda bits, right, past: (
        right.T if right.ndim == 2 and right.shape[0] == right.shape[1] else right
    ),
    "drops-the-last-element": lambda bits, right, past: right[:-1] if right.ndim else right,
    "reverses-rows": lambda bits, right, past: right[..., ::-1] if right.ndim else right,
    "reads-strides-as-contiguous": lambda bits, right, past: (
        right if bits.flags.c_contiguous else right.reshape(-1, order="F").reshape(right.shape)
    ),
    "sorts-its-answers": _sorted,
    "shifts-answers-by-one": lambda bits, right, past: np.roll(right.reshape(-1), 1).reshape(
        right.shape
    ),
    "caches-by-length": _cached(lambda flat: 0),
    "caches-by-the-first-input": _cached(lambda flat: str(flat[:1].tolist())),
    "caches-by-the-first-sixteen": _cached(lambda flat: str(flat[:16].tolist())),
    "caches-by-both-ends": _cached(lambda flat: str((flat[:1].tolist(), flat[-1:].tolist()))),
    "overwrites-the-last-answer": overwritten,
    "overwrites-the-last-answer-but-one": _overwritten_later,
    "plans-by-the-shape": _planned_by_shape,
    "raises-without-elements": _raises_without_elements,
    "runs-out-of-memory-without-elements": _runs_out_of_memory,
    "writes-to-its-inputs": _writes_to_inputs,
}
NEED_PROCESS = (
    "overwrites-the-last-answer", "overwrites-the-last-answer-but-one", "writes-to-its-inputs",
)  # fmt: skip
"""Faults that show only in a process that owns its inputs and answers."""
