"""The gguf package: its writer and reader, and its quantizers for block types."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from conformance.extras.containers.parties.party import ContainerRoad, Party, tensor
from conformance.extras.containers.parties.text_gguf import (
    BLOCK,
    BLOCK_TYPES,
    TYPES,
    require_blocks,
)
from oracles.adapters.refusals import load
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import format_named

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
"""The magnitudes of float4e2m1 by code."""
LARGEST = {"gguf-q4_0": -8.0, "gguf-q8_0": 127.0, "gguf-mxfp4": 6.0}
"""By container: the value that every block must hold, so that the package chooses the scale one."""

BF16 = 30
"""The number of the type bfloat16."""
VALUES = {
    "gguf-q4_0": "bits.astype(np.float32) - 8",
    "gguf-q8_0": "bits.view(np.int8).astype(np.float32)",
    "gguf-mxfp4": "np.array([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6], "
    "np.float32)[bits]",
}
"""How a script converts codes to floats."""
READ = (
    "import gguf, gguf.quants\n"
    'open("x.gguf", "wb").write(content)\n'
    '[found] = gguf.GGUFReader("x.gguf").tensors\n'
    "y = gguf.quants.dequantize(found.data, found.tensor_type)\n"
)


class GgufParty(Party):
    """Writes and reads GGUF files by the package gguf.

    Bfloat16 and block types are quantized from floats by `gguf.quants`, as converters do; other
    dtypes are written as arrays.
    """

    name = "gguf"

    def __init__(self) -> None:
        self._gguf: Any = load("gguf", "containers")
        self._quants: Any = load("gguf.quants", "containers")
        self.version = version("gguf")
        super().__init__()

    def roads(self) -> Mapping[str, ContainerRoad]:
        """Return how gguf writes and reads files of plain dtypes, and of each block type."""
        blocks = ContainerRoad(self._write_blocks, self._read_blocks, "", READ)
        return {
            "gguf": ContainerRoad(self._write, self._read, "", READ),
            **dict.fromkeys(BLOCK_TYPES, blocks),
        }

    def reproduce_write(self, case: Case) -> str:
        """Return statements that bind ``content`` to a GGUF file of the patterns ``bits``.

        For bfloat16 and block types, they convert the patterns to floats, which the package then
        quantizes.
        """
        kind, values, options = None, f'bits.view("{case.source}")', ""
        if case.version in BLOCK_TYPES:
            kind, values = BLOCK_TYPES[case.version].number, VALUES[case.version]
        elif case.source == "bfloat16":
            kind, values = BF16, "(bits.astype(np.uint32) << 16).view(np.float32)"
        if kind is not None:
            values, options = f"gguf.quants.quantize({values}, kind)", ", raw_dtype=kind"
        return (
            "import gguf, gguf.quants\n"
            + (f"kind = gguf.GGMLQuantizationType({kind})\n" if kind is not None else "")
            + f"x = {values}\n"
            + 'to = gguf.GGUFWriter("x.gguf", "none")\n'
            + f'to.add_tensor("x", x{options})\n'
            + "to.write_header_to_file(); to.write_kv_data_to_file(); "
            + "to.write_tensors_to_file(); to.close()\n"
            + 'content = open("x.gguf", "rb").read()\n'
        )

    def _write(self, case: Case, bits: Bits) -> bytes:
        if case.modes or case.source not in TYPES:
            raise Unsupported(f"gguf writes no {case.id.partition('/')[2]}")
        if not bits.ndim:
            raise Unsupported("gguf has no tensors without dimensions")
        if case.source != "bfloat16":
            return self._file(bits.view(case.source), None)
        kind = self._gguf.GGMLQuantizationType.BF16
        if not bits.size:
            raise Unsupported("gguf quantizes no empty tensors")
        wide = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
        return self._file(self._quants.quantize(wide, kind), kind)

    def _write_blocks(self, case: Case, bits: Bits) -> bytes:
        if case.modes:
            raise Unsupported("gguf writes blocks of floats")
        require_blocks(case.version, case.source, bits.shape)
        kind = self._kind(case.version)
        floats = _values(case.version, bits)
        blocks = floats.reshape(-1, BLOCK)
        if not (blocks == LARGEST[case.version]).any(axis=1).all() or (
            np.abs(blocks).max() > abs(LARGEST[case.version])
        ):
            raise Unsupported("gguf chooses another scale than one for these blocks")
        return self._file(self._quants.quantize(floats, kind), kind)

    def _file(self, data: Any, kind: Any) -> bytes:
        with TemporaryDirectory() as folder:
            path = Path(folder, "x.gguf")
            writer = self._gguf.GGUFWriter(path, "none")
            writer.add_tensor("x", data, raw_dtype=kind)
            writer.write_header_to_file()
            writer.write_kv_data_to_file()
            writer.write_tensors_to_file()
            writer.close()
            return path.read_bytes()

    def _tensor(self, content: bytes, folder: str) -> Any:
        path = Path(folder, "x.gguf")
        path.write_bytes(content)
        [found] = self._gguf.GGUFReader(path).tensors
        return found

    def _read(self, case: Case, content: bytes) -> Tensor:
        with TemporaryDirectory() as folder:
            found = self._tensor(content, folder)
            if found.tensor_type == self._gguf.GGMLQuantizationType.BF16:
                wide = self._quants.dequantize(found.data, found.tensor_type)
                codes = wide.view(np.uint32)
                if (codes & np.uint32(0xFFFF)).any():
                    raise ValueError("a bfloat16 has more than 16 bits")
                return tensor("bfloat16", (codes >> np.uint32(16)).astype(np.uint16))
            array = np.array(found.data)
            return tensor(array.dtype.name, array)

    def _read_blocks(self, case: Case, content: bytes) -> Tensor:
        with TemporaryDirectory() as folder:
            found = self._tensor(content, folder)
            kind = self._kind(case.version)
            if found.tensor_type != kind:
                raise ValueError(f"the tensor has type {found.tensor_type}")
            floats = self._quants.dequantize(found.data, kind)
            dtype = BLOCK_TYPES[case.version].dtype
            return tensor(dtype, _codes(case.version, floats))

    def _kind(self, container: str) -> Any:
        return self._gguf.GGMLQuantizationType(BLOCK_TYPES[container].number)


def _values(container: str, codes: Bits) -> Any:
    """Return the float32 values of a block type's codes, if the scale of each block is one."""
    match container:
        case "gguf-q4_0":
            return codes.astype(np.float32) - 8
        case "gguf-q8_0":
            return codes.view(np.int8).astype(np.float32)
    return np.where(codes & 8, -1, 1).astype(np.float32) * E2M1[codes & 7]


def _codes(container: str, values: Any) -> Bits:
    """Return a block type's codes of float32 values; raise ValueError for one without a code."""
    every = np.arange(1 << format_named(BLOCK_TYPES[container].dtype).bits, dtype=np.uint8)
    known = {float(value).hex(): code for code, value in enumerate(_values(container, every))}
    try:
        found = [known[float(value).hex()] for value in values.ravel()]
    except KeyError as error:
        raise ValueError(f"{float.fromhex(error.args[0])} is the value of no code") from None
    return np.array(found, np.uint8).reshape(values.shape)
