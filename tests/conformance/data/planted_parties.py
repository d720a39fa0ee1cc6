"""Parties with one fault each, as public threads report them; all else they do as the texts say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from conformance.extras.containers.parties.party import ContainerRoad, tensor
from conformance.extras.containers.parties.text_onnx import number_of, write_tensor
from conformance.extras.containers.parties.texts import Texts, packed_row, write_npy
from oracles.protocol import Bits, Tensor, Unsupported
from specs.cases import Case
from specs.formats import format_named


class Planted(Texts):
    """Knows one container only, whose road a subclass changes."""

    name = "planted"
    container: str

    def roads(self) -> Mapping[str, ContainerRoad]:
        road = super().roads()[self.container]
        return {self.container: ContainerRoad(self.written(road), self.reading(road))}

    def written(self, road: ContainerRoad) -> Any:
        return road.write

    def reading(self, road: ContainerRoad) -> Any:
        return road.read


class HighFirst(Planted):
    """pytorch/ao#2939: the second element of a pair lies in the low bits."""

    container = "packed-low-first"

    def written(self, road: ContainerRoad) -> Any:
        def write(case: Case, bits: Bits) -> bytes:
            width = format_named(case.source).bits
            if width != 4 or bits.ndim != 1 or case.modes:
                raise Unsupported("pairs only")
            return len(bits).to_bytes(8, "little") + packed_row(bits, 4, True)

        return write


class PairsSwapped(Planted):
    """openvinotoolkit/openvino PR 32123: u4 [1, 2] is read as [2, 1]."""

    container = "onnx-raw"

    def reading(self, road: ContainerRoad) -> Any:
        def read(case: Case, content: bytes) -> Tensor:
            found = road.read(case, content)  # type: ignore[misc]
            if format_named(case.source).bits != 4:
                return found
            row = found.bits.reshape(-1)
            padded = np.zeros(row.size + row.size % 2, np.uint8)
            padded[: row.size] = row
            swapped = padded.reshape(-1, 2)[:, ::-1].reshape(-1)[: row.size]
            return tensor(case.source, swapped.reshape(found.bits.shape))

        return read


class EntryPerElement(Planted):
    """onnx/ir-py PR 118: `int32_data` of 4-bit elements has an entry for each element."""

    container = "onnx-typed"

    def written(self, road: ContainerRoad) -> Any:
        def write(case: Case, bits: Bits) -> bytes:
            if format_named(case.source).bits != 4:
                return road.write(case, bits)  # type: ignore[misc]
            plain = write_tensor("uint8", bits, is_raw=False)
            return plain.replace(bytes([2 << 3, 2]), bytes([2 << 3, number_of(case.source)]), 1)

        return write


class NoSignExtended(Planted):
    """jax-ml/jax#17672: int4 -8 comes back as int8 8."""

    container = "packed-low-first"

    def reading(self, road: ContainerRoad) -> Any:
        def read(case: Case, content: bytes) -> Tensor:
            found = road.read(case, content)  # type: ignore[misc]
            return tensor("int8", found.bits) if case.source == "int4" else found

        return read


class VoidForBfloat16(Planted):
    """jax-ml/ml_dtypes#41: a file of bfloat16 says `V2`."""

    container = "npy"

    def written(self, road: ContainerRoad) -> Any:
        def write(case: Case, bits: Bits) -> bytes:
            if case.source != "bfloat16":
                return road.write(case, bits)  # type: ignore[misc]
            return write_npy("float16", bits, is_big=False).replace(b"'<f2'", b"'<V2'")

        return write


class OneByteFloat(Planted):
    """jax-ml/ml_dtypes#207: a file of float8 says `f1`, which is no dtype."""

    container = "npy"

    def written(self, road: ContainerRoad) -> Any:
        def write(case: Case, bits: Bits) -> bytes:
            if case.source != "float8e5m2":
                return road.write(case, bits)  # type: ignore[misc]
            return write_npy("int8", bits, is_big=False).replace(b"'|i1'", b"'<f1'")

        return write


class AnyTwoBytesAreBfloat16(Planted):
    """GreenWaves-Technologies/bfloat16#6, keras-team/keras PR 19091: two bytes are a bfloat16."""

    container = "npz"

    def reading(self, road: ContainerRoad) -> Any:
        def read(case: Case, content: bytes) -> Tensor:
            found = road.read(case, content)  # type: ignore[misc]
            return replace(found, dtype="bfloat16") if found.bits.itemsize == 2 else found

        return read


class BytesReversed(Planted):
    """huggingface/safetensors PR 82: bfloat16 is written with its highest byte first."""

    container = "safetensors"

    def written(self, road: ContainerRoad) -> Any:
        def write(case: Case, bits: Bits) -> bytes:
            swapped = bits.byteswap() if case.source == "bfloat16" else bits
            return road.write(case, swapped)  # type: ignore[misc]

        return write


class NoStrides(Planted):
    """A writer that ignores strides: it repeats the first element of a non-contiguous tensor."""

    container = "safetensors"

    def written(self, road: ContainerRoad) -> Any:
        def write(case: Case, bits: Bits) -> bytes:
            rows = np.zeros(bits.shape, bits.dtype)
            if bits.size and not bits.flags.c_contiguous:
                first = bits.reshape(-1)[:1]
                rows[...] = np.resize(first, bits.shape)
            else:
                rows[...] = bits
            return road.write(case, rows)  # type: ignore[misc]

        return write


class NeighborsShareAByte(Planted):
    """A writer of Q4_0 that packs neighbors, where ggml packs j and j + 16."""

    container = "gguf-q4_0"

    def written(self, road: ContainerRoad) -> Any:
        def write(case: Case, bits: Bits) -> bytes:
            if bits.ndim and not bits.size % 32:
                halves = np.ascontiguousarray(bits).reshape(-1, 16, 2).swapaxes(1, 2)
                bits = np.ascontiguousarray(halves).reshape(bits.shape)
            return road.write(case, bits)  # type: ignore[misc]

        return write


class TailLost(Planted):
    """ROCm/AMDMIGraphX PR 2730: the last element of an odd row is lost."""

    container = "onnx-raw"

    def reading(self, road: ContainerRoad) -> Any:
        def read(case: Case, content: bytes) -> Tensor:
            found = road.read(case, content)  # type: ignore[misc]
            if format_named(case.source).bits != 4 or not found.bits.size % 2:
                return found
            row = found.bits.reshape(-1).copy()
            row[-1] = 0
            return tensor(case.source, row.reshape(found.bits.shape))

        return read


class SubnormalsFlushed(Planted):
    """tenstorrent/tt-metal#54899: a copy of bfloat16 makes subnormals zero."""

    container = "dlpack"

    def reading(self, road: ContainerRoad) -> Any:
        def read(case: Case, content: bytes) -> Tensor:
            found = road.read(case, content)  # type: ignore[misc]
            if case.source != "bfloat16":
                return found
            is_small = found.bits & np.uint16(0x7F80) == 0
            return replace(found, bits=np.where(is_small, found.bits & 0x8000, found.bits))

        return read
