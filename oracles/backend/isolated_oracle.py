"""Oracles in processes of their own, where a crash does not end the run, and the client for them.

Such a process serves its oracle by ``oracles.backend.server``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from oracles.backend.backend_supervisor import (
    BackendSupervisor,
    EncodedRequest,
    LaunchConfig,
    SupervisedOracle,
)
from oracles.backend.crash_bisect import CrashBisector
from oracles.backend.frames import (
    MAX_PAYLOAD,
    Frame,
    FrameError,
    SharedMemory,
    encode_frame,
    pack_arrays,
    unpack_arrays,
)
from oracles.backend.message_codec import (
    OracleDescription,
    decode_description,
    decode_returned,
    encode_batch,
    encode_call,
    encode_case,
    encode_layouts,
)
from oracles.backend.remote_errors import (
    ProcessDied,
    RemoteBaseException,
    decode_error,
    remote_error,
    unsendable_answer,
)
from oracles.backend.requests import CastAtOnce, CastBatch, MakeCall, Request
from oracles.backend.supervised_process import ProcessFailed, SupervisedProcess, startup_notice
from oracles.memory_layouts import BatchAnswers, TensorBatch, layout_of
from oracles.protocol import Bits, Bound, Swept, Tensor
from specs import VERSION
from specs.cases import Call, Case
from specs.errors import CastigateError
from specs.formats import format_named

if TYPE_CHECKING:
    from specs.chains import Company

SWEEP_CALL = 1 << 17
"""Inputs per call of the oracle in a sweep: with their answers they fit into a core's own cache."""
SWEEP_BYTES = 1 << 22
"""Bytes of the answers to one request of a sweep."""
BISECTED = {"call"}
"""Forwarded methods that answer element by element, so that a crash can be traced to inputs."""
SCRIPT = "reproduce"
"""The prefix of the names of methods that write scripts; no verdict depends on a script."""
MAX_LOST_MESSAGES = 3
"""Once this many messages of several requests have failed, each request is sent in its own."""


class IsolatedOracle(SupervisedOracle):
    """An oracle in another process; after a crash, the next request starts a new process.

    Beside ``cast``, ``cast_batch``, ``cast_at_once``, ``answer_together`` and ``sweep`` it has the
    optional methods that the oracle itself has, but for ``device_sweep`` and the values of
    ``ROADS``. ``on_reply`` is called after every reply, to show progress. The constructor starts
    the process, and raises CastigateError if the backend cannot be loaded.
    """

    claims: tuple[str, ...]

    def __init__(
        self, backend: str, config: LaunchConfig, on_reply: Callable[[], None] = lambda: None
    ) -> None:
        client = PythonClient(backend, config)
        self._supervisor = BackendSupervisor(backend, client, on_reply)
        self._seconds = config.seconds
        self._lost_messages = 0
        self._bisector = CrashBisector(self.close, config.seconds)
        self._bisected = self._bisector.ask
        self.description = description = self._supervisor.info
        self.name, self.version = description.name, description.version
        if description.claims is not None:
            self.claims = description.claims
        self.compiles_shapes = description.compiles_shapes
        self.row_limits = description.row_limits
        self.chain_roads = description.chain_roads
        special = {"bind": self._bind, "identity": self._identity}
        for method in description.offers:
            setattr(self, method, special.get(method, partial(self._forward, method)))

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return the oracle's answer; raise its error, or ProcessDied with the inputs at fault."""
        answer: Bits = self._bisected(partial(self._ask, "cast", case), bits)
        return answer

    def cast_batch(self, case: Case, batch: TensorBatch) -> BatchAnswers:
        """Cast a batch of tensors in one request; return the answers before the first failure.

        If the process dies, there are none: the caller has to cast the tensors one by one.
        """
        request = {"ask": "casts", "case": encode_case(case), "batch": encode_batch(batch)}
        try:
            answers: BatchAnswers = self._supervisor.ask(
                request, {"": batch.elements}, self._seconds
            )
        except ProcessDied:
            # The caller casts the rest one by one, and gets the crash there.
            return BatchAnswers(batch.elements[:0], 0)
        return answers

    def answer_together(self, requests: Sequence[Request]) -> list[Any]:
        """Return for each request its answer, its exception or None; send as few messages as fit.

        None means that the request has to be sent alone. Either no message can include it, or its
        message or ``MAX_LOST_MESSAGES`` before it failed, or it failed while the process had hardly
        any memory left.
        """
        answers: list[Any] = [None] * len(requests)
        for message in round_messages(requests, self.description.offers):
            if self._lost_messages >= MAX_LOST_MESSAGES:
                break
            try:
                found = self._supervisor.ask(message.header, message.arrays, self._seconds)
            except (ProcessDied, RemoteBaseException, Exception):
                self._lost_messages += 1
                continue
            for places, of_entry in zip(message.places, found, strict=True):
                for place, answer in zip(places, of_entry, strict=True):
                    answers[place] = answer
        return answers

    def cast_at_once(
        self, case: Case, many: Sequence[Bits], beside: Case | None = None
    ) -> list[Bits]:
        """Cast tensors in two threads of the oracle's process; return the answers in their order.

        The second thread casts every second tensor, as the case ``beside`` (by default ``case``).
        Raises the oracle's error, or ProcessDied.
        """
        other = encode_case(case if beside is None else beside)
        request = {"ask": "casts_at_once", "case": encode_case(case), "beside": other}
        arrays = {str(place): bits for place, bits in enumerate(many)}
        answers = self._supervisor.ask(request, arrays, self._seconds)
        return [answers[name] for name in arrays]

    def sweep(self, case: Case, lo: int, hi: int) -> Swept:
        """Return a function that answers consecutive patterns within ``range(lo, hi)``.

        Its inputs are generated in the oracle's process.
        """
        target = format_named(case.target)
        storage = np.dtype(target.storage)
        request = {
            "ask": "sweep",
            "case": encode_case(case),
            "lo": lo,
            "hi": hi,
            "most": SWEEP_CALL,
            "storage": storage.name,
            "is_narrow": target.bits < 8 * storage.itemsize,
        }
        from oracles.backend.remote_sweep import RemoteSweep  # Only the tier `full` sweeps.

        return RemoteSweep(
            self._supervisor,
            self._bisector,
            request,
            partial(self._ask, "bound" if hasattr(self, "bind") else "cast", case),
            np.dtype(format_named(case.source).storage),
            lo,
            hi,
            SWEEP_BYTES // storage.itemsize,
        )

    def _bind(self, case: Case, bits: Bits) -> Bound:
        self._bisected(partial(self._ask, "bind", case), bits)
        return partial(self._bisected, partial(self._ask, "bound", case), bits)

    def _forward(self, method: str, case: Case, *more: Any) -> Any:
        """Call an optional method of the oracle; return its answer, raise its error or ProcessDied.

        ``more`` is empty, one tensor, tensors by name, or a call (or company) and its tensors by
        name. Where a method in ``BISECTED`` gets a single tensor, ProcessDied has the fewest inputs
        found. A method that writes scripts raises an ordinary exception in place of ProcessDied.
        """
        request: dict[str, Any] = {"ask": method, "case": encode_case(case)}
        arrays: Mapping[str, Bits] = {}
        match more:
            case [call, members]:
                request["call"], arrays = encode_call(call), members
            case [Mapping() as tensors]:
                arrays = tensors
            case [bits]:
                arrays = {"": bits}
        if method.startswith(SCRIPT):
            with _crash_as_exception():
                return self._supervisor.ask(request, arrays, self._seconds)
        # A layer's members must keep their lengths, so only a single member can be bisected.
        if method not in BISECTED or len(arrays) != 1:
            return self._supervisor.ask(request, arrays, self._seconds)
        [(name, tensor)] = arrays.items()

        def ask(part: Bits, seconds: float) -> Any:
            return self._supervisor.ask(request, {name: part}, seconds)

        return self._bisected(ask, tensor)

    def _identity(self, dtype: str, bits: Bits) -> Bits:
        request = {"ask": "identity", "dtype": dtype}
        with _crash_as_exception():
            answer: Bits = self._supervisor.ask(request, {"": bits}, self._seconds)
        return answer

    def _ask(self, ask: str, case: Case, bits: Bits, seconds: float) -> Any:
        request = {"ask": ask, "case": encode_case(case)}
        return self._supervisor.ask(request, {"": bits}, seconds)


@contextmanager
def _crash_as_exception() -> Iterator[None]:
    """Raise an Exception in place of a ProcessDied or RemoteBaseException from the block."""
    try:
        yield
    except (ProcessDied, RemoteBaseException) as error:
        raise remote_error((type(error).__name__, "Exception"), str(error)) from None


MESSAGE_BYTES = 1 << 24
COMPARED_BYTES = 1 << 16
"""A message sends tensors with the same content once if they have at most so many bytes.

It compares no larger tensors and no texts: it sends them once only if they are one object."""


@dataclass
class RoundMessage:
    """One message with several requests of a round, which are grouped into entries.

    An entry is a request for one method and the same tensors, for one or more cases: ``ask``,
    ``arrays``, ``cases``, and ``batch`` or ``call`` if there is one. ``offers`` names the optional
    methods that the oracle has.
    """

    offers: Collection[str]
    entries: list[dict[str, Any]] = field(default_factory=list)
    places: list[list[int]] = field(default_factory=list)
    """For each entry, the index in the round of the request of each of its cases."""
    arrays: dict[str, Bits] = field(default_factory=dict)
    calls: list[Call | Company] = field(default_factory=list)
    size: int = 0
    _array_names: dict[Hashable, str] = field(default_factory=dict)
    _call_places: dict[int, int] = field(default_factory=dict)
    _entry_of: dict[Hashable, int] = field(default_factory=dict)
    _times: Counter[Hashable] = field(default_factory=Counter)

    @property
    def header(self) -> dict[str, Any]:
        """The header of the message: its entries, and the calls that they name by index."""
        calls = [*map(encode_call, self.calls)]
        return {"ask": "many", "requests": self.entries, "calls": calls}

    def add(self, place: int, request: Request) -> bool:
        """Add the request with index ``place`` in the round; return False if it must travel alone.

        That holds for a ``CastAtOnce``, and for a request whose method the oracle lacks.
        """
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
    """Yield messages of about ``MESSAGE_BYTES`` with all requests that need not travel alone."""
    message = RoundMessage(offers)
    for place, request in enumerate(requests):
        message.add(place, request)
        if message.size >= MESSAGE_BYTES:
            yield message
            message = RoundMessage(offers)
    if message.entries:
        yield message


class PythonClient:
    """Starts ``oracles.backend.server`` under an interpreter, and speaks the server's protocol."""

    def __init__(self, backend: str, config: LaunchConfig) -> None:
        self._backend = backend
        self._config = config
        self._memory = SharedMemory() if hasattr(os, "memfd_create") else None

    def start(self) -> SupervisedProcess:
        """Start a server for the backend; raise CastigateError if its interpreter cannot be run."""
        config = self._config
        try:
            inherited = (self._memory.descriptor,) if self._memory else ()
            command = config.command(self._backend)
            return SupervisedProcess(command, config.environment, descriptors=inherited)
        except OSError as error:
            raise self._error(f": {config.interpreter}: {error.strerror}") from None

    def handshake(self, process: SupervisedProcess) -> OracleDescription:
        """Return the description that a new server sends once it has loaded its oracle.

        Raises CastigateError if the backend cannot be loaded, or another interpreter has no
        Castigate of this version. Raises ProcessTimeout if a message does not come in time, and
        ProcessFailed if the process ends.
        """
        with startup_notice(f"loading {self._backend} takes over", self._config.startup_seconds):
            return self._description(process)

    def _description(self, process: SupervisedProcess) -> OracleDescription:
        config = self._config
        try:
            version = process.receive(config.startup_seconds).header.get("castigate")
        except ProcessFailed as failure:
            if config.python is None:
                raise
            raise self._error(f": {config.python} {failure}; {config.install_hint}") from None
        if version != VERSION:
            problem = f"has castigate {version}, this is {VERSION}"
            raise self._error(f": {config.python} {problem}; {config.install_hint}")
        header = process.receive(config.startup_seconds).header
        if "load_error" in header:
            where = f" ({config.python})" if config.python is not None else ""
            raise CastigateError(f"{header['load_error']}{where}")
        try:
            return decode_description(header.get("oracle"))
        except FrameError as error:
            raise self._error(f": {error}") from None

    def encode(
        self, number: int, request: Mapping[str, Any], arrays: Mapping[str, Bits]
    ) -> EncodedRequest:
        """Encode a request and its named arrays as a frame, with the decoder of its reply.

        ``request`` has the members of the header but for ``number``, ``arrays`` and ``layouts``.
        """
        if request["ask"] == "sweep" and self._memory is not None:
            return self._encode_sweep(number, request, self._memory)
        fields, payload = pack_arrays(arrays)
        layouts = encode_layouts(arrays)
        header = {"number": number, **request, "arrays": fields, "layouts": layouts}
        decode = partial(_decode_reply, request)
        return EncodedRequest(encode_frame(header, payload), MAX_PAYLOAD, decode)

    def _encode_sweep(
        self, number: int, request: Mapping[str, Any], memory: SharedMemory
    ) -> EncodedRequest:
        """Encode a request of a sweep, with a slot of shared memory in which its answers may be."""
        offset, size = memory.slot(number)
        slot = {"descriptor": memory.descriptor, "offset": offset, "bytes": size}
        header = {"number": number, **request, "memory": slot}
        storage = np.dtype(request["storage"])

        def decode(reply: Frame) -> Any:
            if "in_memory" not in reply.header:
                return _decode_reply(request, reply)
            length = request["count"] * storage.itemsize
            if reply.header["in_memory"] != length or length > size:
                raise FrameError("an answer in memory that has another length than was asked for")
            answers = np.frombuffer(memory.content(offset, length), storage)
            # The process may write there later, which must not put other bits above narrow codes.
            return answers.copy() if request["is_narrow"] else answers

        return EncodedRequest(encode_frame(header), MAX_PAYLOAD, decode)

    def say_goodbye(self, process: SupervisedProcess) -> None:
        """Do nothing: our own server may be killed at any time."""

    def _error(self, message: str) -> CastigateError:
        return CastigateError(f"backend `{self._backend}`{message}")


def _decode_reply(request: Mapping[str, Any], reply: Frame) -> Any:
    arrays = unpack_arrays(reply.header.get("arrays", []), reply.payload)
    return _decode_answer(request, reply.header, arrays)


def _decode_answer(
    request: Mapping[str, Any], header: dict[str, Any], arrays: Mapping[str, Bits]
) -> Any:
    """Return the answer that a header describes, or the exception raised in place of one.

    The answer to a message with several requests is a list: for each of its entries, the list of
    ``_decode_answers``. Raises FrameError if the header is incomplete.
    """
    error = decode_error(header)
    if error is not None:
        return error
    try:
        if request["ask"] == "many":
            return [
                _decode_answers(asked, replies, arrays)
                for asked, replies in zip(request["requests"], header["replies"], strict=True)
            ]
        kinds = header.get("unsendable", {}).items()
        arrays = {**arrays, **{name: unsendable_answer(str(kind)) for name, kind in kinds}}
        if "many" in header:
            return {name: arrays[name] for name in header["many"]}
        if request["ask"] == "casts":
            return _decode_batch_answers(request["batch"]["shapes"], header, arrays[""])
        if "tensor" in header:
            dtype, device = header["tensor"]
            return Tensor(str(dtype), str(device), arrays[""])
        if "text" in header:
            return str(header["text"])
        if "flag" in header:
            return bool(header["flag"])
        if "returned" in header:
            return decode_returned(header["returned"], arrays)
        return arrays.get("")
    except (TypeError, LookupError, AttributeError, ValueError):
        raise FrameError("the description of an answer is incomplete") from None


def _decode_answers(
    asked: Mapping[str, Any], replies: Mapping[str, Any], arrays: Mapping[str, Bits]
) -> list[Any]:
    """Return, for each case of an entry ``asked``, its answer, its exception or None.

    None stands for a failure while memory was nearly full: the request has to be sent again. Cases
    on one road share an answer.
    """
    answers = [
        None
        if each.get("memory_is_full")
        else _decode_answer(asked, each, _named(each.get("arrays", {}), arrays))
        for each in replies["answers"]
    ]
    return [answers[place] for place in replies["of_cases"]]


def _named(places: Mapping[str, str], arrays: Mapping[str, Bits]) -> dict[str, Bits]:
    return {name: arrays[place] for name, place in places.items()}


def _decode_batch_answers(
    shapes: list[tuple[int, ...]], header: Mapping[str, Any], elements: Bits
) -> BatchAnswers:
    count, failure = header["count"], header["next"]
    if not 0 <= count <= len(shapes) or elements.shape != (sum(map(prod, shapes[:count])),):
        raise FrameError("the answers to a batch do not have the shapes of its tensors")
    # A tensor that failed while memory was nearly full is cast again, in a new process.
    error = None if failure.get("memory_is_full") else decode_error(failure)
    return BatchAnswers(elements, count, error)
