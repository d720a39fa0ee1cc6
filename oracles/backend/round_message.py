"""Many requests as one message, in which equal tensors and calls are sent once.

Requests that differ only in their case become one entry with a list of cases. Messages are bounded
in bytes, so that a large request does not hold the others up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from oracles.backend.message_codec import encode_batch, encode_call, encode_case
from oracles.backend.requests import CastAtOnce, CastBatch, MakeCall, Request
from oracles.memory_layouts import layout_of
from oracles.protocol import Bits
from specs.calls import Call
from specs.chains import Company

MESSAGE_BYTES = 1 << 24
COMPARED_BYTES = 1 << 16
"""Equal tensors of at most this many bytes are sent once; larger ones only if identical objects."""


@dataclass
class RoundMessage:
    """One message: the entries, and the places of the requests that they answer.

    ``offers`` names the optional methods that the oracle has.
    """

    offers: Collection[str]
    entries: list[dict[str, Any]] = field(default_factory=list)
    places: list[list[int]] = field(default_factory=list)
    """For each entry, the places of the requests in their order, one for each of its cases."""
    arrays: dict[str, Bits] = field(default_factory=dict)
    calls: list[Call | Company] = field(default_factory=list)
    size: int = 0
    _array_names: dict[Hashable, str] = field(default_factory=dict)
    _call_places: dict[int, int] = field(default_factory=dict)
    _entry_of: dict[Hashable, int] = field(default_factory=dict)
    _times: Counter[Hashable] = field(default_factory=Counter)

    @property
    def header(self) -> dict[str, Any]:
        """The header of the message."""
        calls = [*map(encode_call, self.calls)]
        return {"ask": "many", "requests": self.entries, "calls": calls}

    def add(self, place: int, request: Request) -> bool:
        """Add a request; return False if it must travel alone, or the oracle lacks its method."""
        if isinstance(request, CastAtOnce):
            return False
        if request.method not in ("cast", "casts", *self.offers):
            return False
        names = {name: self._name_of(each) for name, each in request.tensors.items()}
        entry: dict[str, Any] = {"ask": request.method, "arrays": names}
        key: tuple[Hashable, ...] = (request.method, *names.items())
        if isinstance(request, CastBatch):
            entry["batch"] = encode_batch(request.batch)
            batch = request.batch
            lies = tuple(batch.shapes), tuple(batch.layouts.items()), batch.is_rewritten
            key = (*key, *lies)
        elif request.made is not None:
            entry["call"] = self._place_of(request.made)
            if isinstance(request, MakeCall) and request.is_kept:
                entry["is_kept"] = True
            key = (*key, entry["call"], "is_kept" in entry)
        # If a case makes equal requests, each is answered.
        self._times[key, request.case] += 1
        key = (*key, self._times[key, request.case])
        index = self._entry_of.setdefault(key, len(self.entries))
        if index == len(self.entries):
            self.entries.append(entry | {"cases": []})
            self.places.append([])
        self.entries[index]["cases"].append(encode_case(request.case))
        self.places[index].append(place)
        return True

    def _name_of(self, array: Bits) -> str:
        key: Hashable = id(array)
        if array.nbytes <= COMPARED_BYTES and array.dtype != object:
            key = array.dtype, array.shape, layout_of(array), array.tobytes()
        name = self._array_names.setdefault(key, str(len(self._array_names)))
        if name not in self.arrays:
            self.arrays[name] = array
            self.size += array.nbytes
        return name

    def _place_of(self, call: Call | Company) -> int:
        place = self._call_places.setdefault(id(call), len(self.calls))
        if place == len(self.calls):
            self.calls.append(call)
        return place


def round_messages(requests: Sequence[Request], offers: Collection[str]) -> Iterator[RoundMessage]:
    """Yield messages with all requests that can travel together."""
    message = RoundMessage(offers)
    for place, request in enumerate(requests):
        message.add(place, request)
        if message.size >= MESSAGE_BYTES:
            yield message
            message = RoundMessage(offers)
    if message.entries:
        yield message
