"""The base class of adapters for libraries of block formats, and script lines that they share.

Such a library quantizes by a function of its own, which takes a tensor and returns packed codes and
scales. An adapter writes the call down as the lines of a script. These lines are what it executes,
and what a reproduction script shows, so a script makes the call that was judged.

The lines find the patterns of the input in ``bits``, an array of rows. They find those of scales in
``scale_bits`` and the global scale in ``global_bits``, where a case has these. They bind ``y``
to the patterns of the result, and ``scale`` to those of the scales if they quantize.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, ClassVar

import numpy as np

from oracles.adapters.refusals import not_installed, require_variant
from oracles.adapters.script_text import bits_statement
from oracles.protocol import Bits, Unsupported
from specs.cases import Case
from specs.formats import format_named

MX, NVFP4 = "MX", "NVFP4"
FAMILIES: Mapping[int, str] = {32: MX, 16: NVFP4}
"""The formats of blocks by the number of elements that share a scale."""
SCALES: Mapping[str, str] = {MX: "float8e8m0", NVFP4: "float8e4m3fn"}
"""By format of blocks, the dtype of the scales."""
NUMBERS = ("float32", "bfloat16", "float16")
"""The dtypes of numbers that blocks are made of."""

TORCH_CARRIERS: Mapping[str, str] = {"float32": "int32", "bfloat16": "int16", "float16": "int16"}
"""The integers of the same size by which torch and numpy exchange bits."""

UNPACK_LOW_FIRST = "y = np.stack([packed & 15, packed >> 4], axis=-1).reshape(len(bits), -1)"
PACK_LOW_FIRST = "packed = bits[:, ::2] | bits[:, 1::2] << 4"
"""The first of two codes is in the lower bits."""

FEW = 4
"""With at most this many patterns besides the most frequent one, a script lists only those."""


@dataclass(frozen=True)
class BlockCase:
    """The parameters of a case of blocks.

    ``family`` is MX or NVFP4. ``number`` is the dtype of numbers and ``element`` that of codes,
    whichever is the source. ``rule`` names how scales are found; it is empty if the case decodes.
    ``size`` elements share a scale. With ``has_global`` the case gives a global scale.
    """

    family: str
    number: str
    element: str
    rule: str
    size: int
    has_global: bool

    @property
    def is_decoding(self) -> bool:
        """Whether the case computes numbers from codes and scales."""
        return not self.rule

    @property
    def is_packed(self) -> bool:
        """Whether elements have four bits, so that libraries pack two into a byte."""
        return format_named(self.element).bits == 4


def block_case(case: Case) -> BlockCase:
    """Return the parameters of a case of blocks of 32 or 16 elements.

    Raises Unsupported for any other case, and for numbers of a dtype that ``NUMBERS`` lacks.
    """
    size = int(case.mode.get("block", "0"))
    family = FAMILIES.get(size)
    is_decoding = case.target in NUMBERS
    number, element = (case.source, case.target)[:: -1 if is_decoding else 1]
    rule = case.mode.get("rule", "")
    if family is None or number not in NUMBERS or bool(rule) == is_decoding:
        raise Unsupported("a library of block formats makes blocks of 32 or 16 elements only")
    return BlockCase(family, number, element, rule, size, case.mode.get("global") == "given")


class BlockLibrary(ABC):
    """The base class of adapters that quantize and decode blocks by one call of a library."""

    name: str
    distribution: ClassVar[str]
    """The name of the package on the index."""
    extra: ClassVar[str]
    imports: ClassVar[str]
    """The lines that import what calls need."""
    claims: tuple[str, ...] = (
        "mx-blocks",
        "mx-blocks-decode",
        "nvfp4-blocks",
        "nvfp4-blocks-decode",
    )

    def __init__(self, variant: str | None = None) -> None:
        self._imported: dict[str, Any] = {"np": np}
        try:
            exec(self.imports, self._imported)
        except ModuleNotFoundError as error:
            raise not_installed(error, self.extra) from error
        require_variant(self.name, variant, ())
        self.version = version(self.distribution)

    @abstractmethod
    def lines(self, asked: BlockCase) -> list[str]:
        """Return the Python lines of the library's call for a case, as the module describes.

        Raises Unsupported if the library has no such call.
        """

    def takes_ragged(self, asked: BlockCase) -> bool:
        """Return whether the library accepts rows whose last block is shorter; here False."""
        return False

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Raise Unsupported: such a library casts only in blocks."""
        raise Unsupported(f"{self.distribution} makes blocks, and casts no tensor for itself")

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> Mapping[str, Bits]:
        """Quantize the numbers ``x`` or decode the codes ``x``; return the results by name.

        Quantization returns the codes ``y`` and the scales ``scale``; decoding takes such scales,
        too, and returns the numbers ``y``. Both take ``global`` if the case gives a global scale.
        Raises Unsupported for a case or a shape that the library does not take.
        """
        asked = block_case(case)
        if tensors["x"].shape[-1] % asked.size and not self.takes_ragged(asked):
            raise Unsupported(f"{self.distribution} takes rows of whole blocks only")
        names = dict(self._imported)
        for name, array in _inputs(asked, tensors).items():
            names[name] = array.copy()  # some libraries write into their inputs
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec("\n".join(self.lines(asked)), names)
        shape = tensors["x"].shape
        if asked.is_decoding:
            return {"y": names["y"].reshape(shape)}
        codes = names["y"].reshape(*shape[:-1], -1)[..., : shape[-1]]  # some libraries pad rows
        return {"y": codes, "scale": names["scale"].reshape(*shape[:-1], -1)}

    def reproduce_quantize(self, case: Case, tensors: Mapping[str, Bits]) -> str:
        """Return a self-contained script that makes the library's call for a case.

        Raises Unsupported if the library has no such call.
        """
        asked = block_case(case)
        dtypes = {"bits": case.source, "scale_bits": SCALES[asked.family], "global_bits": "float32"}
        bindings = [
            _binding(name, dtypes[name], array) for name, array in _inputs(asked, tensors).items()
        ]
        printed = [f'print("{case.target}:", *map(hex, y.flat))']
        if not asked.is_decoding:
            printed = ['print("scales:", *map(hex, scale.flat))', *printed]
        comment = f"# {self.distribution} {self.version}: {case}"
        head = [comment, "import numpy as np", self.imports.rstrip()]
        return "\n".join([*head, *bindings, *self.lines(asked), *printed]) + "\n"

    def declined(self, asked: BlockCase) -> Unsupported:
        """Return the Unsupported error of a case for which the library has no function."""
        doing = "decodes no" if asked.is_decoding else "makes no"
        rule = f" by the rule {asked.rule}" if asked.rule else ""
        what = f"{asked.family} blocks of {asked.element}"
        return Unsupported(f"{self.distribution} {doing} {what} and {asked.number}{rule}")


def _inputs(asked: BlockCase, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
    """Return, by the names that a call's lines read, the arrays of a case.

    The input and the scales are reshaped to rows, the global scale to one element.
    """
    x = tensors["x"]
    inputs: dict[str, Bits] = {"bits": x.reshape(-1, x.shape[-1])}
    if asked.is_decoding:
        inputs["scale_bits"] = tensors["scale"].reshape(len(inputs["bits"]), -1)
    if asked.has_global:
        inputs["global_bits"] = tensors["global"].reshape(1)
    return inputs


def _binding(name: str, dtype: str, bits: Bits) -> str:
    """Return the lines that bind a name to an array that is not empty.

    Of more than ``FEW`` patterns they list only those that differ from the most frequent one,
    unless more than ``FEW`` do.
    """
    patterns = bits.ravel().tolist()
    usual, _ = Counter(patterns).most_common(1)[0]
    others = [place for place, pattern in enumerate(patterns) if pattern != usual]
    if len(patterns) <= FEW or len(others) > FEW:
        return bits_statement(dtype, bits).replace("bits", name, 1)
    text = format_named(dtype).hexadecimal
    if usual == 0 and len(others) == 1 and len(bits) == 1:
        one = f"np.eye(1, {bits.size}, {others[0]}, np.{bits.dtype})"
        return f"{name} = {one} * np.{bits.dtype}({text(patterns[others[0]])})"
    lines = [f"{name} = np.full({bits.shape}, {text(usual)}, np.{bits.dtype})"]
    if others:
        values = ", ".join(text(patterns[place]) for place in others)
        lines.append(f"{name}.flat[{others}] = [{values}]")
    return "\n".join(lines)


def tensor_line(name: str, dtype: str, source: str = "bits") -> str:
    """Return the line that binds a name to a torch tensor of the numbers in an array.

    ``source`` is the expression of the array of patterns.
    """
    return (
        f"{name} = torch.from_numpy({source}.view(np.{TORCH_CARRIERS[dtype]})).view(torch.{dtype})"
    )


def torch_inputs(asked: BlockCase, data: str = "torch.uint8") -> list[str]:
    """Return the lines that bind ``data`` and ``scale`` to torch tensors of codes and scales.

    The parameter ``data`` is the dtype of the tensor of codes. Codes of four bits are packed, two
    in a byte.
    """
    scale = "torch.uint8" if asked.family == MX else "torch.float8_e4m3fn"
    return [
        PACK_LOW_FIRST if asked.is_packed else "packed = bits",
        f"data = torch.from_numpy(packed).view({data})",
        f"scale = torch.from_numpy(scale_bits).view({scale})",
    ]


def torch_results(asked: BlockCase, named: tuple[str, str] = ("data", "scale")) -> list[str]:
    """Return the lines that bind ``y`` and ``scale`` to the patterns of codes and scales.

    The pair ``named`` has the expressions of the torch tensors of codes and of scales. Codes of
    four bits are unpacked.
    """
    data, scale = named
    codes = "packed" if asked.is_packed else "y"
    lines = [
        f"scale, {codes} = (each.view(torch.uint8).numpy() for each in ({scale}, {data}))",
    ]
    return [*lines, UNPACK_LOW_FIRST] if asked.is_packed else lines


def numbers_line(dtype: str) -> str:
    """Return the line that replaces the torch tensor ``y`` of numbers by its patterns."""
    carrier = TORCH_CARRIERS[dtype]
    return f"y = y.contiguous().view(torch.{carrier}).numpy().view(np.u{carrier})"


GLOBAL_TENSOR = tensor_line("total", "float32", "global_bits")
"""Binds ``total`` to the global scale, a torch tensor of one element."""
