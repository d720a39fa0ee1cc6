"""Encodes the messages to and from a Python backend's process as JSON and arrays.

They contain oracles' descriptions, cases, calls, memory layouts and the results of calls. Each
``decode_…`` function reads what its ``encode_…`` function has written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from oracles.backend.frames import FrameError
from oracles.memory_layouts import Layout, TensorBatch, layout_of
from oracles.protocol import (
    CAPABILITIES,
    ROADS,
    Bits,
    Oracle,
    Returned,
    Tensor,
    are_row_limits,
    chain_roads_of,
    claims_of,
    compiles_per_shape,
    offers,
    row_limits_of,
)
from specs.cases import Argument, Call, Case, Member
from specs.operations import methods_of_families

if TYPE_CHECKING:
    from specs.chains import Company

CACHED_CASES = 64
NOT_CALLED = {"sweep", "device_sweep", *ROADS.values()}
"""Optional methods that a description leaves out: only the server may call them."""


@cache
def optional_methods() -> tuple[str, ...]:
    """Return the names of the optional methods that a request may name.

    The call imports more of the suite, so a server sends its version before.
    """
    return (
        *(
            name
            for name, capability in CAPABILITIES.items()
            if name not in NOT_CALLED and callable(getattr(capability, name, None))
        ),
        *methods_of_families(),
    )


@dataclass(frozen=True)
class OracleDescription:
    """The oracle of a backend's process; ``offers`` has those of ``optional_methods`` that it has.

    ``claims`` is None if the oracle has none of its own.
    """

    name: str
    version: str
    claims: tuple[str, ...] | None
    offers: tuple[str, ...]
    compiles_shapes: bool
    row_limits: tuple[int, ...]
    chain_roads: tuple[str, ...]


def encode_description(oracle: Oracle) -> dict[str, Any]:
    """Encode an oracle's description as an object with the fields of ``OracleDescription``."""
    claims = claims_of(oracle)
    return {
        "name": str(oracle.name),
        "version": oracle.version,
        "claims": None if claims is None else list(claims),
        "offers": [name for name in optional_methods() if offers(oracle, name)],
        "compiles_shapes": compiles_per_shape(oracle),
        "row_limits": list(row_limits_of(oracle)),
        "chain_roads": list(chain_roads_of(oracle)),
    }


def decode_description(encoded: Any) -> OracleDescription:
    """Decode an oracle's description, but for unknown methods; raise FrameError if malformed."""
    try:
        claims, offers, limits = (encoded[name] for name in ("claims", "offers", "row_limits"))
        if not are_row_limits(limits):
            raise ValueError
        return OracleDescription(
            name=str(encoded["name"]),
            version=str(encoded["version"]),
            claims=None if claims is None else tuple(map(str, claims)),
            # Other names are ignored: they could hide methods of the oracle on this side.
            offers=tuple(name for name in optional_methods() if name in offers),
            compiles_shapes=bool(encoded["compiles_shapes"]),
            row_limits=tuple(limits),
            chain_roads=tuple(map(str, encoded["chain_roads"])),
        )
    except (TypeError, LookupError, ValueError):
        raise FrameError("the description of the backend is incomplete") from None


def encode_case(case: Case) -> list[Any]:
    """Encode a case as the list of its fields."""
    return [case.document, case.version, case.source, case.target, case.modes, case.example]


def decode_case(encoded: list[Any]) -> Case:
    """Decode a case; the last few cases are cached, so that a repeated one is the same object."""
    *names, modes, example = encoded
    return _cached_case(*names, tuple(map(tuple, modes)), example)


@lru_cache(CACHED_CASES)
def _cached_case(*fields: Any) -> Case:
    return Case(*fields)


def encode_call(call: Call | Company) -> dict[str, Any]:
    """Encode a call, or a company of chains, as a JSON object."""
    if not isinstance(call, Call):
        chains = [[encode_case(step) for step in chain.steps] for chain in call.chains]
        return {"chains": chains, "road": call.road}
    return {
        "receiver": call.receiver,
        "members": [[member.name, member.kind, member.dtype] for member in call.members],
        "method": call.method,
        "args": [[argument.kind, argument.value] for argument in call.args],
        "kwargs": [[name, argument.kind, argument.value] for name, argument in call.kwargs],
        "device": call.device,
        "inputs": list(call.inputs),
    }


def decode_call(encoded: dict[str, Any]) -> Call | Company:
    """Decode what ``encode_call`` has encoded."""
    if "chains" in encoded:
        from specs import chains  # Few runs ask them.

        steps = (tuple(map(decode_case, each)) for each in encoded["chains"])
        return chains.Company(tuple(map(chains.Chain, steps)), encoded["road"])
    return Call(
        encoded["receiver"],
        tuple(Member(*member) for member in encoded["members"]),
        encoded["method"],
        tuple(Argument(*argument) for argument in encoded["args"]),
        tuple((name, Argument(*argument)) for name, *argument in encoded["kwargs"]),
        encoded["device"],
        tuple(encoded["inputs"]),
    )


def encode_layouts(arrays: Mapping[str, Bits]) -> dict[str, Any]:
    """Encode the layouts of arrays by name; leave out arrays for which ``layout_of`` is None."""
    layouts = {name: layout_of(array) for name, array in arrays.items()}
    return {name: _encode_layout(each) for name, each in layouts.items() if each is not None}


def decode_layouts(encoded: Mapping[str, Any]) -> dict[str, Layout]:
    """Decode memory layouts by the name of their array."""
    return {name: Layout(tuple(strides), offset) for name, (strides, offset) in encoded.items()}


def _encode_layout(layout: Layout) -> list[Any]:
    return [layout.strides, layout.offset]


def encode_batch(batch: TensorBatch) -> dict[str, Any]:
    """Encode a batch but for its elements, which travel as an array."""
    layouts = {str(index): _encode_layout(layout) for index, layout in batch.layouts.items()}
    encoded = {"shapes": list(batch.shapes), "layouts": layouts}
    return encoded | {"is_rewritten": True} if batch.is_rewritten else encoded


def decode_batch(encoded: Mapping[str, Any], elements: Bits) -> TensorBatch:
    """Decode a batch, whose elements are ``elements``."""
    layouts = decode_layouts(encoded["layouts"])
    shapes = [tuple(shape) for shape in encoded["shapes"]]
    numbered = {int(index): each for index, each in layouts.items()}
    return TensorBatch(elements, shapes, numbered, "is_rewritten" in encoded)


def encode_returned(returned: Returned) -> tuple[dict[str, Any], dict[str, Bits]]:
    """Encode what a call returned as a JSON object and arrays.

    The key of an array is the path to its tensor in the object, such as ``tensors/weight``.
    """
    arrays: dict[str, Bits] = {}

    def encode_tensor(place: str, tensor: Tensor) -> list[str]:
        arrays[place] = tensor.bits
        return [tensor.dtype, tensor.device]

    def encode_tensors(place: str, tensors: Mapping[str, Tensor]) -> dict[str, list[str]]:
        return {name: encode_tensor(f"{place}/{name}", tensor) for name, tensor in tensors.items()}

    encoded = {
        "is_receiver": returned.is_receiver,
        "shares_memory": returned.shares_memory,
        "tensors": encode_tensors("tensors", returned.tensors),
        "receiver": encode_tensors("receiver", returned.receiver),
        "outputs": {
            dtype: encode_tensor(f"outputs/{dtype}", output)
            if isinstance(output, Tensor)
            else output
            for dtype, output in returned.outputs.items()
        },
    }
    return encoded, arrays


def decode_returned(encoded: dict[str, Any], arrays: Mapping[str, Bits]) -> Returned:
    """Decode what a call returned, from what ``encode_returned`` gave."""

    def decode_tensors(place: str) -> dict[str, Tensor]:
        return {
            name: Tensor(dtype, device, arrays[f"{place}/{name}"])
            for name, (dtype, device) in encoded[place].items()
        }

    def decode_output(dtype: str, output: Any) -> Tensor | str:
        if isinstance(output, str):
            return output
        name, device = output
        return Tensor(name, device, arrays[f"outputs/{dtype}"])

    return Returned(
        encoded["is_receiver"],
        encoded["shares_memory"],
        decode_tensors("tensors"),
        decode_tensors("receiver"),
        {dtype: decode_output(dtype, output) for dtype, output in encoded["outputs"].items()},
    )
