"""Containers: planted faults are found and named, and the texts' own party agrees with itself."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from conformance.extras.containers.faults import OTHER
from conformance.extras.containers.findings import MOST_LINES, PartyFault, findings_of
from conformance.extras.containers.parties.parties import TEXT
from conformance.extras.containers.parties.texts import Texts
from conformance.extras.containers.ways import (
    CONTAINERS,
    Way,
    probes,
    storable,
    ways_of,
    whole,
)
from oracles.registry import Backend
from specs.formats import format_named
from tests.conformance.data import planted_parties as planted

FAULTS = [
    (planted.HighFirst, "writes", "the first element is taken from the high bits", {"int4"}),
    (planted.PairsSwapped, "reads", "the first element is taken from the high bits", {"uint4"}),
    (planted.EntryPerElement, "writes", "elements lie in bytes of their own", {"int4"}),
    (planted.NoSignExtended, "reads", "the dtype becomes int8", {"int4"}),
    (planted.VoidForBfloat16, "writes", "the dtype becomes V2", {"bfloat16"}),
    (planted.OneByteFloat, "writes", "the dtype becomes f1", {"float8e5m2"}),
    (planted.AnyTwoBytesAreBfloat16, "reads", "the dtype becomes bfloat16", {"int16", "float16"}),
    (planted.BytesReversed, "writes", "the bytes of elements are reversed", {"bfloat16"}),
    (planted.NoStrides, "writes", "the memory layout is ignored", {"float32", "int8"}),
    (
        planted.NeighborsShareAByte,
        "writes",
        "neighbors share a byte instead of j and j + 16",
        {"uint4"},
    ),
    (planted.TailLost, "reads", "a last byte that is not full is lost", {"int4"}),
    (planted.SubnormalsFlushed, "reads", "subnormals become zero", {"bfloat16"}),
]


def survey(container: str, *parties: object) -> tuple[list[Way], list[PartyFault]]:
    backends = [Backend(each.name, each) for each in parties]  # type: ignore[attr-defined]
    ways = ways_of(backends, container, storable())
    return ways, findings_of(backends, ways)


@pytest.mark.parametrize(
    ("party", "side", "fault", "dtypes"), FAULTS, ids=[each[0].__name__ for each in FAULTS]
)
def test_a_planted_fault_is_found_and_named(
    party: type[planted.Planted], side: str, fault: str, dtypes: set[str]
) -> None:
    ways, findings = survey(party.container, Texts(), party())
    found = [each for each in findings if (each.party, each.side) == ("planted", side)]
    assert {each.fault for each in found} == {fault}
    assert dtypes <= {dtype for each in found for dtype in each.dtypes}
    assert all(TEXT not in (each.party,) for each in findings)
    example = found[0].example
    assert (example.read_dtype, example.read_patterns) != (example.dtype, example.patterns)
    assert all(not way.different for way in ways if way.writer == way.reader == TEXT)


@pytest.mark.parametrize("container", CONTAINERS)
def test_what_the_texts_write_they_read(container: str) -> None:
    ways, findings = survey(container, Texts())
    assert findings == []
    assert container == "torch-save" or any(way.identical for way in ways)


@pytest.mark.parametrize("dtype", storable())
def test_every_pattern_of_16_bits_is_asked(dtype: str) -> None:
    entry = format_named(dtype)
    last = probes(dtype)[-1].bits
    if entry.bits <= 16:
        assert np.array_equal(np.unique(last), np.arange(1 << entry.bits))
    if entry.bits in (2, 4):
        count = 8 // entry.bits
        rows = {tuple(row) for row in whole(entry).reshape(-1, count).tolist()}
        assert len(rows) == 256


def test_the_smallest_tensor_is_shown() -> None:
    _, findings = survey("onnx-raw", Texts(), planted.PairsSwapped())
    [found] = findings
    assert len(found.example.patterns) <= 2
    _, findings = survey("dlpack", Texts(), planted.SubnormalsFlushed())
    [found] = findings
    assert (found.example.patterns, found.example.read_patterns) == (("0x0001",), ("0x0000",))


def test_a_crash_is_a_finding_and_a_refusal_is_none() -> None:
    class Refuses(planted.Planted):
        container = "npy"

        def reading(self, road: object) -> object:
            def read(case: object, content: bytes) -> object:
                raise ValueError("not mine")

            return read

    ways, findings = survey("npy", Texts(), Refuses())
    assert findings == []
    refused = [way for way in ways if way.reader == "planted" and way.writer == TEXT]
    assert {reason for way in refused for reason in way.refused.values()} >= {
        "planted: ValueError: not mine"
    }


def test_an_unexplained_change_is_called_so() -> None:
    class Plus(planted.Planted):
        container = "npy"

        def reading(self, road: object) -> object:
            def read(case: object, content: bytes) -> object:
                found = Texts().roads()["npy"].read(case, content)  # type: ignore[misc, arg-type]
                return type(found)(found.dtype, found.device, found.bits ^ found.bits.dtype.type(5))

            return read

    ways = ways_of([Backend("text", Texts()), Backend("planted", Plus())], "npy", ["uint16"])
    assert {way.fault for way in ways if way.reader == "planted"} == {OTHER}


def test_scripts_run_alone() -> None:
    numpy_party = pytest.importorskip("conformance.extras.containers.parties.numpy_party")
    pytest.importorskip("ml_dtypes")
    _, findings = survey("npy", Texts(), numpy_party.NumpyParty())
    found = next(each for each in findings if each.fault == "the dtype becomes V2")
    script = found.example.script
    assert len(script.splitlines()) <= MOST_LINES
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[0] == "|V2"
