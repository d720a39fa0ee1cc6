"""``python -m oracles.backend.server``: serves one backend through two pipes, which carry frames.

The arguments are those of ``main``, the pipes' descriptors last. The exit code is 2 for a malformed
frame or a broken pipe, else 0. The backend prints to stderr.
"""

from __future__ import annotations

import gc
import mmap
import os
import sys
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, FileIO
from typing import Any

import numpy as np

from oracles.backend.frames import (
    Frame,
    FrameError,
    Pieces,
    encode_frame,
    is_sendable,
    pack_arrays,
    read_frame,
    unpack_arrays,
)
from oracles.backend.message_codec import (
    decode_batch,
    decode_call,
    decode_case,
    decode_layouts,
    encode_description,
    encode_returned,
    optional_methods,
)
from oracles.backend.remote_errors import encode_error
from oracles.backend.resource_limits import (
    die_with_parent,
    disable_core_dumps,
    is_memory_nearly_full,
    limit_memory,
)
from oracles.memory_layouts import TensorBatch, copied, with_layout
from oracles.protocol import (
    CAPABILITIES,
    ROADS,
    VIEWING,
    Bits,
    InputsChanged,
    Returned,
    Swept,
    Tensor,
    Unsupported,
    WithRoad,
    WithSweep,
    as_array,
    returned_by,
)
from oracles.registry import load_oracle
from specs import VERSION
from specs.cases import Case
from specs.errors import CastigateError

READ_BUFFER = 1 << 17
ANSWERS_KEPT = 32
"""How many answers stay uncopied while later ones are made: a backend may reuse their memory."""
GC_THRESHOLDS = (100_000, 10, 10)
"""Thresholds for ``gc.set_threshold``, high because scans of compiled programs take long."""
Packed = tuple[dict[str, Any], dict[str, Bits]]
"""The members of a reply's header, and the arrays of its payload by name."""


class _Distinct:
    """Collects copies of arrays; arrays with equal dtype, shape and bytes share one copy."""

    def __init__(self) -> None:
        self.arrays: dict[str, Bits] = {}
        self._places: dict[Hashable, str] = {}

    def place_of(self, array: Bits) -> str:
        """Return the key in ``arrays`` (a number, as text) of a copy of this array.

        Arrays with equal dtype, shape and bytes have one key; an array of objects always gets a new
        one.
        """
        place = str(len(self.arrays))
        if array.dtype != object:
            key = array.dtype, array.shape, array.tobytes()
            place = self._places.setdefault(key, place)
        if place not in self.arrays:
            self.arrays[place] = array.copy()
        return place


@dataclass(frozen=True)
class _Refusal:
    """The key of a case whose road the oracle refuses to name, with ``Unsupported(text)``."""

    text: str


class Server:
    """Answers request frames by calling an oracle.

    With ``shares_answers``, a method in ``ROADS`` is called once for all cases of a request that
    the oracle puts on one road.
    """

    def __init__(self, oracle: Any, shares_answers: bool) -> None:
        self._oracle = oracle
        self._bound: tuple[Case, Bits, Callable[[], Bits]] | None = None
        self._swept: tuple[object, Swept] | None = None
        """The last sweep as ``(case, lo, hi)``, and the function that answers its patterns."""
        self._memory: mmap.mmap | None = None
        self._has_roads = isinstance(oracle, WithRoad)
        self._shared = {
            method: road
            for method, road in ROADS.items()
            if shares_answers and isinstance(oracle, CAPABILITIES[road])
        }
        """By method whose answers are shared: the oracle's method that names the road of a case."""

    def reply_to(self, request: Frame) -> Pieces:
        """Return a reply frame with the oracle's answer, or with the exception that was raised.

        In the request's header, an encoded ``call`` is replaced by the call itself.
        """
        number = {"number": request.header["number"]}
        try:
            header = request.header
            if "call" in header:
                header["call"] = decode_call(header["call"])
            members, arrays = self._answer(header, _decode_arrays(request))
            fields, payload = pack_arrays(arrays)
            return encode_frame(number | members | {"arrays": fields}, payload)
        except BaseException as error:
            return encode_frame(number | _encode_failure(error))

    def _answer(self, header: dict[str, Any], arrays: dict[str, Bits]) -> Packed:
        ask, oracle = header["ask"], self._oracle
        if ask == "identity":
            return _encode_array(oracle.identity(header["dtype"], arrays[""]))
        if ask == "many":
            return self._answer_many(header, arrays)
        case = decode_case(header["case"])
        match ask:
            case "casts":
                return self._cast_batch(case, decode_batch(header["batch"], arrays[""]))
            case "casts_at_once":
                from oracles.backend.two_threads import cast_at_once  # Few requests need it.

                both = case, decode_case(header["beside"])
                return _encode_named(cast_at_once(oracle, both, arrays))
            case "bind":
                self._bind(case, arrays[""])
                return {}, {}
            case "bound":
                return _encode_array(self._call_bound(case, arrays[""]))
            case "sweep":
                return self._sweep(case, header)
            case "road":
                answer = oracle.road(case)
            case _ if ask != "cast" and ask not in optional_methods():
                raise FrameError(f"a request of the unknown kind {ask!r}")
            case _ if "call" in header:
                answer = getattr(oracle, ask)(case, header["call"], arrays)
            case _:
                given = (arrays.get("", arrays),) if arrays else ()
                with _unchanged(*arrays.values()):
                    answer = getattr(oracle, ask)(case, *given)
        if ask == "cast":
            return _encode_array(answer)
        return ENCODERS[returned_by(ask)](answer)

    def _answer_many(self, header: dict[str, Any], arrays: dict[str, Bits]) -> Packed:
        """Answer the requests of a message, each once for all cases with the same ``_road`` key.

        The header returned has ``replies``, one per request: its ``answers``, and in ``of_cases``
        the index of each case's answer. Equal arrays are sent once. An answer that may be a view of
        an input, or whose request has ``is_kept``, is copied only after up to ``ANSWERS_KEPT``
        later ones are made.
        """
        replies: list[dict[str, Any]] = []
        distinct, calls = _Distinct(), [*map(decode_call, header["calls"])]
        kept: deque[tuple[dict[str, Any], dict[str, Bits]]] = deque()

        def read(reply: dict[str, Any], found: dict[str, Bits]) -> None:
            reply["arrays"] = {name: distinct.place_of(each) for name, each in found.items()}

        def read_all_but(count: int) -> None:
            while len(kept) > count:
                reply, found = kept.popleft()
                try:
                    read(reply, found)
                except BaseException as error:
                    reply |= _encode_failure(error)

        def answer(request: dict[str, Any]) -> dict[str, Any]:
            try:
                # A copy: an oracle that writes to its inputs must not change another's.
                own = {name: copied(arrays[place]) for name, place in request["arrays"].items()}
                reply, found = self._answer(request, own)
                if request["ask"] in VIEWING or "is_kept" in request:
                    kept.append((reply, found))
                    read_all_but(ANSWERS_KEPT)
                else:
                    read(reply, found)
                return reply
            except BaseException as error:
                return _encode_failure(error)

        for request in header["requests"]:
            cases = request["cases"]
            if "call" in request:
                request["call"] = calls[request["call"]]
            answers: list[dict[str, Any]] = []
            of_cases: list[int] = []
            places: dict[Hashable, int] = {}
            for case in cases:
                road = self._road(request["ask"], case)
                if road not in places:
                    answers.append(answer(request | {"case": case}))
                    # If `road` refused a case that the oracle answers, every case is asked.
                    if not isinstance(road, _Refusal) or "unsupported" in answers[-1]:
                        places[road] = len(answers) - 1
                of_cases.append(places.get(road, len(answers) - 1))
            replies.append({"answers": answers, "of_cases": of_cases})
        read_all_but(0)
        return {"replies": replies}, distinct.arrays

    def _road(self, ask: str, encoded: list[Any]) -> Hashable:
        """Return the key of an encoded case; cases with equal keys get one answer to equal tensors.

        The key is a ``_Refusal`` where the oracle refuses the road, the road's name if the method
        ``ask`` shares answers by road, else the case: its answer is to be compared with those of
        its road.
        """
        case = decode_case(encoded)
        try:
            if ask in self._shared:
                return str(getattr(self._oracle, self._shared[ask])(case)) or case
            if ask in ("cast", "casts") and self._has_roads:
                self._oracle.road(case)
        except Unsupported as refusal:
            return _Refusal(str(refusal))
        except BaseException:
            return case  # which reports the error when it is asked
        return case

    def _cast_batch(self, case: Case, batch: TensorBatch) -> Packed:
        """Cast a batch's tensors one by one until one fails, and return the answers before that.

        A cast fails if it raises, or if its answer cannot be sent, or has another shape than its
        tensor or another dtype than the answer before. The header has the ``count`` of answers, and
        in ``next`` the exception that was raised, if any. An answer is copied only after up to
        ``ANSWERS_KEPT`` later ones are made; in a batch that ``is_rewritten``, at once, because it
        may be the tensor itself.
        """
        answers: list[Bits] = []
        kept: deque[Bits] = deque()
        dtypes: set[np.dtype[Any]] = set()
        failure: dict[str, Any] = {}
        most = 0 if batch.is_rewritten else ANSWERS_KEPT
        for tensor in batch.rewritten() if batch.is_rewritten else batch.tensors():
            shape = tensor.shape
            try:
                with _unchanged(tensor):
                    answer = as_array(self._oracle.cast(case, tensor))
            except BaseException as error:
                failure = _encode_failure(error)
                break
            if not is_sendable(answer) or answer.shape != shape:
                break
            dtypes.add(answer.dtype)
            if len(dtypes) > 1:
                break
            kept.append(answer)
            if len(kept) > most:
                answers.append(kept.popleft().flatten())
        answers += [answer.flatten() for answer in kept]
        elements = np.concatenate(answers) if answers else np.zeros(0, np.uint8)
        return {"count": len(answers), "next": failure}, {"": elements}

    def _bind(self, case: Case, bits: Bits) -> Callable[[], Bits]:
        self._bound = None
        buffer = np.array(bits)
        call = self._oracle.bind(case, buffer)
        self._bound = case, buffer, call
        return call  # type: ignore[no-any-return]

    def _call_bound(self, case: Case, bits: Bits) -> Bits:
        if self._bound is not None:
            bound_case, buffer, call = self._bound
            if (bound_case, buffer.shape, buffer.dtype) == (case, bits.shape, bits.dtype):
                np.copyto(buffer, bits)
                return call()
        return self._bind(case, bits)()

    def _sweep(self, case: Case, header: dict[str, Any]) -> Packed:
        """Answer ``count`` patterns from ``first`` on, in calls of the oracle with up to ``most``.

        The answers are in shared memory if the header names a slot, else in the payload. If a
        call's answer has a wrong dtype or shape, it alone is returned.
        """
        lo, hi, most = header["lo"], header["hi"], header["most"]
        if self._swept is None or self._swept[0] != (case, lo, hi):
            self._swept = None
            self._swept = (case, lo, hi), self._prepare(case, lo, hi, most)
        first, count = header["first"], header["count"]
        slot = header.get("memory")
        answers = self._place(slot, count, np.dtype(header["storage"]))
        for at in range(0, count, most):
            part = answers[at : at + most]
            answer = self._swept[1](first + at, part.size)
            if not is_sendable(answer) or (answer.dtype, answer.shape) != (part.dtype, part.shape):
                return _encode_array(answer)
            np.copyto(part, answer)
        return _encode_array(answers) if slot is None else ({"in_memory": answers.nbytes}, {})

    def _place(self, slot: dict[str, int] | None, count: int, storage: np.dtype[Any]) -> Bits:
        if slot is None:
            return np.empty(count, storage)
        if self._memory is None:
            self._memory = mmap.mmap(slot["descriptor"], 0)
        return np.frombuffer(self._memory, storage, count, slot["offset"])

    def _prepare(self, case: Case, lo: int, hi: int, most: int) -> Swept:
        if isinstance(self._oracle, WithSweep):
            return self._oracle.sweep(case, lo, hi)
        # Only the tier `full` sweeps.
        from oracles.bound_sweep import BoundSweep
        from oracles.reference.sweep_inputs import Dense

        return BoundSweep(self._oracle, case, Dense(hi), lo, hi, most)


@contextmanager
def _unchanged(*inputs: Bits) -> Iterator[None]:
    """Raise ``InputsChanged`` if the block changes the bytes of an input.

    Calls that a document describes run without this check, because some may change their receiver.
    """
    before = [each.tobytes() for each in inputs]
    yield
    if before != [each.tobytes() for each in inputs]:
        raise InputsChanged


def _decode_arrays(request: Frame) -> dict[str, Bits]:
    arrays = unpack_arrays(request.header.get("arrays", []), request.payload)
    for name, layout in decode_layouts(request.header.get("layouts", {})).items():
        arrays[name] = with_layout(arrays[name], layout)
    return arrays


def _encode_failure(error: BaseException) -> dict[str, Any]:
    return encode_error(error) | {"memory_is_full": is_memory_nearly_full()}


def _encode_array(answer: object) -> Packed:
    return _pack({}, {"": answer})


def _encode_returned(returned: object) -> Packed:
    if not isinstance(returned, Returned):
        return _encode_array(returned)
    encoded, arrays = encode_returned(returned)
    return _pack({"returned": encoded}, arrays)


def _encode_many(answers: Sequence[object]) -> Packed:
    return _encode_named({str(place): each for place, each in enumerate(answers)})


def _encode_tensor(found: object) -> Packed:
    if not isinstance(found, Tensor):
        return _encode_array(found)
    return _pack({"tensor": [str(found.dtype), str(found.device)]}, {"": found.bits})


def _encode_named(answers: object) -> Packed:
    if not isinstance(answers, Mapping):
        return _encode_array(answers)
    named = {str(name): each for name, each in answers.items()}
    return _pack({"many": [*named]}, named)


def _pack(members: dict[str, Any], answers: Mapping[str, object]) -> Packed:
    """Return a reply's ``members`` with the arrays among the answers, by name.

    For each answer that no frame can carry, the member ``unsendable`` has the name of its type.
    """
    arrays: dict[str, Bits] = {}
    unsendable = {}
    for name, answer in answers.items():
        array = as_array(answer)
        if is_sendable(array):
            arrays[name] = array
        else:
            unsendable[name] = _describe_type(array)
    return members | ({"unsendable": unsendable} if unsendable else {}), arrays


def _describe_type(answer: object) -> str:
    if type(answer) is np.ndarray:
        return f"ndarray of {answer.dtype}"
    return type(answer).__name__


ENCODERS: Mapping[str, Callable[[Any], Packed]] = {
    "Bits": _encode_array,
    "str": lambda text: ({"text": str(text)}, {}),
    "bool": lambda flag: ({"flag": bool(flag)}, {}),
    "Returned": _encode_returned,
    "Sequence[Bits]": _encode_many,
    "Mapping[str, Bits]": _encode_named,
    "Tensor": _encode_tensor,
}
"""By the return annotation of a method (``returned_by``): the function that encodes its answer."""


def main(backend_name: str, memory: int, shares_answers: int, requests: int, replies: int) -> None:
    """Serve a backend through two pipes until the pipe of requests is closed.

    ``requests`` and ``replies`` are file descriptors, ``memory`` is the most bytes that this
    process may use, and ``Server`` gets whether ``shares_answers`` is not 0. The first frame has
    the version of Castigate, the second the oracle's description, or the error if the backend
    cannot be loaded. Raises FrameError for a malformed frame, and OSError if a pipe breaks.
    """
    die_with_parent()
    disable_core_dumps()
    limit_memory(memory)
    for pipe in (requests, replies):
        # A child of the backend must neither answer nor keep the pipes open.
        os.set_inheritable(pipe, False)
        os.register_at_fork(after_in_child=partial(os.close, pipe))
    read = BufferedReader(FileIO(requests, closefd=False), READ_BUFFER).read
    send = partial(_send, replies)
    send(encode_frame({"castigate": VERSION}))
    # What a framework loads is never garbage: looking through it takes a tenth of the loading time.
    gc.disable()
    try:
        oracle = load_oracle(backend_name)
    except CastigateError as error:
        send(encode_frame({"load_error": str(error)}))
        return
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
    gc.enable()
    server = Server(oracle, bool(shares_answers))
    send(encode_frame({"oracle": encode_description(oracle)}))
    while (request := read_frame(read)) is not None:
        send(server.reply_to(request))


def _send(pipe: int, frame: Pieces) -> None:
    for piece in frame:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(pipe, rest) :]


if __name__ == "__main__":
    code = 0
    try:
        main(sys.argv[1], *map(int, sys.argv[2:6]))
    except (FrameError, OSError) as error:
        code = 2
        with suppress(OSError, ValueError):  # stderr may be closed as well
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    # Skip the interpreter's shutdown: frameworks may hang in it, and have nothing left to save.
    os._exit(code)
