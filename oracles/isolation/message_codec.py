"""Oracles, cases, calls and what comes back from these, as JSON and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from oracles.isolation.frames import FrameError
from oracles.memory_layouts import Layout, layout_of
from oracles.protocol import Bits, Returned, Tensor
from specs.calls import Argument, Call, Member
from specs.cases import Case

CASES_KEPT = 64
OPTIONAL = ("bitcast", "bitcast_shares_memory", "call", "road", "bind", "identity", "reproduce")
"""The methods that an oracle may lack."""


@dataclass(frozen=True)
class Hello:
    """What a process serves; ``offers`` are those of the optional methods that are there."""

    name: str
    version: str
    claims: tuple[str, ...] | None
    offers: tuple[str, ...]
    compiles_shapes: bool
    row_limits: tuple[int, ...]


def hello_words(oracle: Any) -> dict[str, Any]:
    """What an oracle is, as JSON."""
    claims = getattr(oracle, "claims", None)
    return {
        "name": str(oracle.name),
        "version": oracle.version,
        "claims": None if claims is None else list(claims),
        "offers": [name for name in OPTIONAL if hasattr(oracle, name)],
        "compiles_shapes": bool(getattr(oracle, "compiles_shapes", False)),
        "row_limits": list(map(int, getattr(oracle, "row_limits", ()))),
    }


def hello_of(words: Any) -> Hello:
    """What an oracle is on the other side; a ``FrameError`` where that is not told."""
    try:
        claims, offers = words["claims"], [name for name in OPTIONAL if name in words["offers"]]
        told = None if claims is None else tuple(map(str, claims))
        dear, limits = bool(words["compiles_shapes"]), tuple(map(int, words["row_limits"]))
        return Hello(str(words["name"]), str(words["version"]), told, tuple(offers), dear, limits)
    except (TypeError, LookupError, ValueError):
        raise FrameError("what a process serves is not told in full") from None


def case_words(case: Case) -> list[Any]:
    """A case as JSON."""
    return [case.document, case.version, case.source, case.target, case.modes, case.example]


def case_of(words: list[Any]) -> Case:
    """The case that is meant: the same object as long as the same is asked."""
    *names, modes, example = words
    return _case(*names, tuple(map(tuple, modes)), example)


@lru_cache(CASES_KEPT)
def _case(*fields: Any) -> Case:
    return Case(*fields)


def call_words(call: Call) -> dict[str, Any]:
    """A call as JSON."""
    return {
        "receiver": call.receiver,
        "members": [[member.name, member.kind, member.dtype] for member in call.members],
        "method": call.method,
        "args": [[given.kind, given.value] for given in call.args],
        "kwargs": [[name, given.kind, given.value] for name, given in call.kwargs],
        "device": call.device,
        "inputs": list(call.inputs),
    }


def call_of(words: dict[str, Any]) -> Call:
    """The call that is meant."""
    return Call(
        words["receiver"],
        tuple(Member(*member) for member in words["members"]),
        words["method"],
        tuple(Argument(*given) for given in words["args"]),
        tuple((name, Argument(*given)) for name, *given in words["kwargs"]),
        words["device"],
        tuple(words["inputs"]),
    )


def layout_words(arrays: Mapping[str, Bits]) -> dict[str, Any]:
    """How arrays lie in memory, as JSON; nothing of those that lie as fresh ones do."""
    layouts = {name: layout_of(array) for name, array in arrays.items()}
    return {name: [each.strides, each.offset] for name, each in layouts.items() if each is not None}


def layouts_of(words: Mapping[str, Any]) -> dict[str, Layout]:
    """The layouts that are meant."""
    return {name: Layout(tuple(strides), offset) for name, (strides, offset) in words.items()}


def returned_words(returned: Returned) -> tuple[dict[str, Any], dict[str, Bits]]:
    """What a call gave back, as JSON and arrays."""
    arrays: dict[str, Bits] = {}

    def noted(place: str, tensor: Tensor) -> list[str]:
        arrays[place] = tensor.bits
        return [tensor.dtype, tensor.device]

    def all_noted(place: str, tensors: Mapping[str, Tensor]) -> dict[str, list[str]]:
        return {name: noted(f"{place}/{name}", tensor) for name, tensor in tensors.items()}

    words = {
        "is_receiver": returned.is_receiver,
        "shares_memory": returned.shares_memory,
        "tensors": all_noted("tensors", returned.tensors),
        "receiver": all_noted("receiver", returned.receiver),
        "outputs": {
            dtype: noted(f"outputs/{dtype}", output) if isinstance(output, Tensor) else output
            for dtype, output in returned.outputs.items()
        },
    }
    return words, arrays


def returned_of(words: dict[str, Any], arrays: Mapping[str, Bits]) -> Returned:
    """What a call gave back on the other side."""

    def all_found(place: str) -> dict[str, Tensor]:
        return {
            name: Tensor(dtype, device, arrays[f"{place}/{name}"])
            for name, (dtype, device) in words[place].items()
        }

    def output(dtype: str, found: Any) -> Tensor | str:
        if isinstance(found, str):
            return found
        name, device = found
        return Tensor(name, device, arrays[f"outputs/{dtype}"])

    return Returned(
        words["is_receiver"],
        words["shares_memory"],
        all_found("tensors"),
        all_found("receiver"),
        {dtype: output(dtype, found) for dtype, found in words["outputs"].items()},
    )
