"""torch's ``Tensor.to(dtype)`` on the CPU."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from oracles.adapters.framework import first_line, load, require_variant
from oracles.adapters.plain_modes import require_plain
from oracles.adapters.script import given, printed
from oracles.protocol import Bits, Bound, Unsupported
from specs.cases import Case
from specs.formats import format_named

VARIANTS: tuple[str, ...] = ()

DTYPES: Mapping[str, str] = {
    "float64": "float64",
    "float32": "float32",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float8e4m3fn": "float8_e4m3fn",
    "float8e4m3fnuz": "float8_e4m3fnuz",
    "float8e5m2": "float8_e5m2",
    "float8e5m2fnuz": "float8_e5m2fnuz",
    "float8e8m0": "float8_e8m0fnu",
    "int64": "int64",
    "int32": "int32",
    "int16": "int16",
    "int8": "int8",
    "uint64": "uint64",
    "uint32": "uint32",
    "uint16": "uint16",
    "uint8": "uint8",
    "bool": "bool",
    "complex64": "complex64",
    "complex128": "complex128",
}
"""The dtypes that torch casts; its types of less than a byte can only be viewed."""

HEADER = """\
# torch {version}: {case}
import numpy as np
import torch

"""


class Torch:
    """A cast by ``Tensor.to``."""

    name = "torch"
    # The documents that torch means to implement are its own, which are not encoded yet.
    claims: tuple[str, ...] = ()

    def __init__(self, variant: str | None = None) -> None:
        self._torch: Any = load("torch", "torch")
        require_variant(self.name, variant, VARIANTS)
        self.version = str(self._torch.__version__)
        self._torch.set_num_threads(1)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Answer a case by one ``to``."""
        require_plain(case, "Tensor.to")
        target = self._dtype(case.target)
        with warnings.catch_warnings():
            # A complex source warns of its discarded part, a read-only array of being one.
            warnings.simplefilter("ignore")
            x = self._tensor(case.source, bits)
            try:
                y = x.to(target)
            except NotImplementedError as error:
                raise Unsupported(first_line(error)) from None
        # To its own dtype a tensor goes as itself: the answer must not share the question's memory.
        return self._bits(case.target, y.clone() if y is x else y)

    def road(self, case: Case) -> str:
        """The pair alone: ``to`` knows nothing of documents, versions and modes."""
        require_plain(case, "Tensor.to")
        for dtype in (case.source, case.target):
            self._dtype(dtype)
        return f"{case.source}->{case.target}"

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Prepare a call that casts ``bits`` into one and the same tensor."""
        self.cast(case, bits[:1])  # refuses what cannot be cast, in the same words
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = self._tensor(case.source, bits)
            y = self._torch.empty(len(bits), dtype=self._dtype(case.target))
            answer = self._bits(case.target, y)

        def call() -> Bits:
            # ``to`` is an ``empty`` followed by this very ``copy_``. The fresh memory costs it 5 to
            # 25 % at 2^17 to 2^18 elements, and several times the cast where pages are mapped anew.
            y.copy_(x)
            return answer

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Bits into a tensor of the dtype, cloned, and out again."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            x = self._tensor(dtype, bits)
        return self._bits(dtype, x.clone())

    def reproduce(self, case: Case, bits: Bits) -> str:
        """A script that asks torch the same, without this project."""
        for dtype in (case.source, case.target):
            self._dtype(dtype)
        source, target = DTYPES[case.source], DTYPES[case.target]
        way_in = "bits.view(np.complex128)" if source == "complex128" else "bits"
        out = format_named(case.target).storage
        way_out = 'y.numpy().view("V16")' if out == "V16" else f"y.view(torch.{out}).numpy()"
        return (
            HEADER.format(version=self.version, case=case)
            + f"{given(case.source, bits)}\n"
            + f"x = torch.from_numpy({way_in}).view(torch.{source})\n"
            + f"y = x.to(torch.{target})\n"
            + f"answers = {way_out}\n"
            + printed(case.source, case.target)
        )

    def _tensor(self, dtype: str, bits: Bits) -> Any:
        torch_dtype = self._dtype(dtype)
        if any(stride < 0 for stride in bits.strides):
            bits = bits.copy()  # torch has no negative strides
        return self._torch.from_numpy(bits.view(_carrier(dtype))).view(torch_dtype)

    def _bits(self, dtype: str, tensor: Any) -> Bits:
        carrier = getattr(self._torch, _carrier(dtype))
        codes: Bits = tensor.view(carrier).numpy().view(np.dtype(format_named(dtype).storage))
        return codes

    def _dtype(self, dtype: str) -> Any:
        try:
            return getattr(self._torch, DTYPES[dtype])
        except (KeyError, AttributeError):
            raise Unsupported(f"torch has no dtype castable as {dtype}") from None


def _carrier(dtype: str) -> str:
    """What numpy and torch both have to carry the patterns: integers, up to 64 bits."""
    storage = format_named(dtype).storage
    return "complex128" if storage == "V16" else storage
