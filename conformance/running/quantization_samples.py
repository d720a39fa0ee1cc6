"""Cases of quantization with tensors whose results no document leaves open, for the self test.

Scales are one, and numbers are whole: nothing is rounded, so that rules and precisions agree. Of
blocks, one element is one and all others are zero. The results are those of the reference.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np

from conformance.kinds.quantization_inputs import tensors_of_element
from oracles.protocol import Bits
from oracles.reference.quantization_kernels import codes_of
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from specs.block_ruling import block_ruling
from specs.cases import Case
from specs.editions import edition
from specs.formats import Format, format_named
from specs.loader import document_named, documents
from specs.model.document import Operation
from specs.operations import is_of_blocks
from specs.quantization_cases import FORM
from specs.quantized_tensors import GLOBAL, SCALE, ZERO, X, operands_of, results_of

OPERATIONS: tuple[Operation, ...] = (
    "quantize", "dequantize", "dynamic-quantize", "block-quantize", "block-dequantize",
)  # fmt: skip
LARGEST = 255
"""The largest number of a sample, where the codes have it."""
WITH_ZERO_POINT = range(8, 17)
"""The bits of codes that get a zero point other than 0; no document leaves theirs open."""


@dataclass(frozen=True)
class Sample:
    """A case, its tensors, and the results that it must have."""

    case: Case
    tensors: dict[str, Bits]
    results: dict[str, Bits]


def sample_cases(
    backend: Backend, operation: Operation, dtypes: Collection[str]
) -> dict[str, list[Case]]:
    """The cases of an operation by both dtypes in words, of the versions that a backend claims.

    All their tensors are of the ``dtypes``.
    """
    claimed = [
        (name, version)
        for name, document in documents().items()
        if document.entry.operation == operation
        for version in reversed(document.entry.versions)
        if backend.claims(name, version)
    ]
    found: dict[str, list[Case]] = {}
    for name, version in claimed:
        for case in _plain_cases(name, version):
            needed = {*operands_of(case).values(), *results_of(case).values()}
            if needed <= set(dtypes):
                found.setdefault(f"{case.source} to {case.target}", []).append(case)
    return found


def sample(case: Case) -> Sample:
    """The tensors of a case, with the results that the reference gives."""
    tensors = _blocks(case) if is_of_blocks(case) else _numbers(case)
    return Sample(case, tensors, dict(Reference().quantize(case, tensors)))


def _plain_cases(document: str, version: str) -> Iterator[Case]:
    """The first case of each two dtypes of a version, which has one scale for the tensor."""
    seen: set[tuple[str, str]] = set()
    for case in edition(document_named(document), version).cases():
        pair = case.source, case.target
        if pair not in seen and case.mode.get(FORM, "tensor") == "tensor":
            seen.add(pair)
            yield case


def _numbers(case: Case) -> dict[str, Bits]:
    """Whole numbers above the zero point, up to 255 at most; where there is a scale, it is one.

    They give no 0, which may get either sign where the result is a float.
    """
    dtypes = {name: format_named(dtype) for name, dtype in operands_of(case).items()}
    codes = dtypes.get(ZERO, format_named(case.target))
    zero = 1 if ZERO in dtypes and codes.is_integral and codes.bits in WITH_ZERO_POINT else 0
    most = min(LARGEST, _largest_whole(codes) - zero)
    values = np.arange(zero + 1, most + 1, dtype=np.float64)
    x = {X: codes_of(dtypes[X], values, values < 0).astype(dtypes[X].storage)}
    if SCALE not in dtypes:
        return x
    return tensors_of_element(case, 0, dtypes[SCALE].one_code, zero) | x


def _largest_whole(codes: Format) -> int:
    """A number up to which the codes have all whole ones."""
    return codes.max_code if codes.is_integral else 1 << codes.entry.mantissa


def _blocks(case: Case) -> dict[str, Bits]:
    """One block: the number one and zeros, or the code of one by the scale one."""
    ruling = block_ruling(case)
    one = ruling.element.one_code if ruling.is_decoding else ruling.number.one_code
    x = np.zeros((1, ruling.size), format_named(case.source).storage)
    x[0, 0] = one
    tensors = {X: x}
    if ruling.is_decoding:
        tensors[SCALE] = np.full((1, 1), ruling.scale.one_code, ruling.scale.storage)
    if ruling.has_global:
        whole = format_named(operands_of(case)[GLOBAL])
        tensors[GLOBAL] = np.array(whole.one_code, whole.storage)
    return tensors
