"""The client of a program that speaks the wire protocol of docs/protocol.md."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from oracles.backend import resource_limits
from oracles.backend.backend_supervisor import EncodedRequest, LaunchConfig
from oracles.backend.frames import (
    READ_CHUNK,
    STORAGES,
    TEXT,
    ArrayFields,
    Frame,
    FrameError,
    SharedMemory,
    encode_frame,
    pack_arrays,
    unpack_arrays,
)
from oracles.backend.remote_errors import MAX_TEXT, remote_error
from oracles.backend.supervised_process import (
    ProcessFailed,
    ProcessTimeout,
    StderrLog,
    SupervisedProcess,
    startup_notice,
)
from oracles.protocol import Bits, Unsupported
from oracles.registry import EXEC
from oracles.wire import schema
from oracles.wire.schema import (
    ELEMENT_REQUESTS,
    PROTOCOL,
    TENSOR_REQUESTS,
    AskBye,
    AskHello,
    AskSweep,
    Error,
    Hello,
    MemoryOffer,
    MemorySlot,
    NamedResult,
    NamedTensor,
    WireCase,
    encode_request,
    parse_answer,
)
from specs import VERSION
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named
from specs.operations import tensor_dtypes
from specs.plain_text import plain_line

GOODBYE_SECONDS = 1.0
GOODBYE_NUMBER = 1 << 40
"""The number of the last request to a program, larger than that of any other."""


class ProgramClient:
    """Starts the program of an ``exec:`` backend, and encodes the requests to its stdin.

    With ``offers_memory`` it offers the program shared memory for the answers to sweeps, where the
    system has such memory. The constructor raises CastigateError if the command cannot be used.
    """

    def __init__(self, backend: str, config: LaunchConfig, offers_memory: bool = True) -> None:
        self._backend = backend
        self._config = config
        self._command = parse_command(backend)
        can_share = offers_memory and hasattr(os, "memfd_create")
        self._memory = SharedMemory() if can_share else None
        self._uses_memory = False
        self.log = StderrLog()

    def start(self) -> SupervisedProcess:
        """Start the program within its resource limits, and return its process."""
        inherited = (self._memory.descriptor,) if self._memory else ()
        # Our interpreter sets the limits by a script and then becomes the program: -I and -S keep
        # our modules out of it, and the environment is passed on unchanged.
        launcher = [sys.executable, "-I", "-S", resource_limits.__file__, str(self._config.memory)]
        command = [*launcher, *self._command]
        return SupervisedProcess(command, os.environ, self.log.append, inherited)

    def handshake(self, process: SupervisedProcess) -> Hello:
        """Return the program's hello; raise CastigateError if the program's answer cannot be used.

        Raises ProcessFailed or ProcessTimeout if no frame comes, or a malformed one.
        """
        offer = None
        if self._memory is not None:
            offer = MemoryOffer(descriptor=self._memory.descriptor, bytes=self._memory.size)
        request = AskHello(number=1, castigate=VERSION, memory=offer)
        frame = encode_frame(encode_request(request))
        seconds = self._config.startup_seconds
        words = f"castigate: `{self._backend}` has not said hello after"
        try:
            with startup_notice(words, seconds, " (docs/protocol.md)"):
                reply = process.request(frame, seconds, 0)
            hello = parse_answer(reply.header)
        except FrameError as error:
            raise self._error(f": its hello is {error}") from None
        if isinstance(hello, Error):
            raise self._error(f": it answers hello by an error: {hello.text}")
        if not isinstance(hello, Hello) or hello.number != request.number:
            raise self._error(f": its first answer is not a hello with number {request.number}")
        if hello.protocol != PROTOCOL:
            raise self._error(
                f" speaks protocol {hello.protocol}; this Castigate speaks {PROTOCOL}"
            )
        for dtype in hello.dtypes:
            try:
                format_named(dtype)
            except CastigateError as error:
                raise self._error(f": its hello names an unknown dtype: {error}") from None
        self._uses_memory = hello.memory and self._memory is not None
        return hello

    def encode(
        self, number: int, request: Mapping[str, Any], arrays: Mapping[str, Bits]
    ) -> EncodedRequest:
        """Return a request as a frame, with the decoder and the largest payload of its reply.

        ``request`` has ``ask`` and ``case``; that of a sweep also has ``first`` and ``count``.
        ``arrays`` has the tensors of a request in ``TENSOR_REQUESTS`` by name, the elements of
        another under the empty name, and nothing for a sweep.
        """
        if request["ask"] in TENSOR_REQUESTS:
            return _encode_tensors(number, request, arrays)
        case = wire_case(request["case"])
        if request["ask"] == "sweep":
            decoder = self._sweep_decoder(case.target, number)
            sweep = AskSweep(
                number=number,
                case=case,
                first=request["first"],
                count=request["count"],
                memory=decoder.slot,
            )
            frame = encode_frame(encode_request(sweep))
            return EncodedRequest(frame, decoder.max_payload(sweep.count), decoder.decode)
        decoder = ReplyDecoder(case.target)
        header_type, growth = ELEMENT_REQUESTS[request["ask"]]
        bits = arrays[""]
        _, payload = pack_arrays(arrays)
        header = header_type(number=number, case=case, shape=list(bits.shape))
        frame = encode_frame(encode_request(header), payload)
        return EncodedRequest(frame, decoder.max_payload(growth * bits.size), decoder.decode)

    def say_goodbye(self, process: SupervisedProcess) -> None:
        """Send ``bye``, and give the program a moment to exit by itself."""
        with suppress(ProcessFailed, ProcessTimeout):
            bye = encode_frame(encode_request(AskBye(number=GOODBYE_NUMBER)))
            process.request(bye, GOODBYE_SECONDS, 0)
            process.wait_for_exit(GOODBYE_SECONDS)

    def _sweep_decoder(self, dtype: str, number: int) -> ReplyDecoder:
        if self._memory is None or not self._uses_memory:
            return ReplyDecoder(dtype)
        offset, size = self._memory.slot(number)
        return ReplyDecoder(dtype, self._memory, MemorySlot(offset=offset, bytes=size))

    def _error(self, message: str) -> CastigateError:
        return CastigateError(f"backend `{self._backend}`{message}")


def _encode_tensors(
    number: int, request: Mapping[str, Any], tensors: Mapping[str, Bits]
) -> EncodedRequest:
    """Return a request for a case's operation on one or more tensors, with its reply's decoder."""
    case: Case = request["case"]
    dtypes, results = tensor_dtypes(case)
    header = TENSOR_REQUESTS[request["ask"]](
        number=number,
        case=wire_case(case),
        tensors=[
            NamedTensor(name=name, dtype=dtypes[name], shape=list(bits.shape))
            for name, bits in tensors.items()
        ],
        results=[NamedResult(name=name, dtype=dtype) for name, dtype in results.items()],
    )
    _, payload = pack_arrays(tensors)
    decoder = TensorsDecoder(results)
    largest = max(bits.size for bits in tensors.values())
    frame = encode_frame(encode_request(header), payload)
    return EncodedRequest(frame, decoder.max_payload(largest), decoder.decode)


def parse_command(backend: str) -> list[str]:
    """Split the command of an ``exec:`` backend as a shell would; no shell ever runs it.

    Raises CastigateError if the command is empty, badly quoted, or names no executable file.
    """
    try:
        command = shlex.split(backend.removeprefix(EXEC))
    except ValueError as error:
        raise CastigateError(f"backend `{backend}`: {error}; quote it as for a shell") from None
    if not command:
        raise CastigateError(f"backend `{backend}`: write exec:COMMAND, for instance exec:./vendor")
    program = command[0]
    if shutil.which(program) is None:
        problem = "is not an executable file" if os.path.exists(program) else "does not exist"
        raise CastigateError(f"backend `{backend}`: {program} {problem}; give a program's path")
    return command


def wire_case(case: Case) -> WireCase:
    """Return a case in the form in which request headers carry it."""
    return WireCase(
        id=case.id,
        document=case.document,
        version=case.version,
        source=case.source,
        target=case.target,
        mode=case.mode,
    )


MAX_TEXT_BYTES = 1 << 26


@dataclass(frozen=True)
class ReplyDecoder:
    """Decodes replies with elements of ``dtype``, in the payload or in ``slot`` of ``memory``."""

    dtype: str
    memory: SharedMemory | None = None
    slot: schema.MemorySlot | None = None

    @property
    def storage(self) -> np.dtype[Any]:
        """The numpy dtype in which an element is stored."""
        return _storage(self.dtype)

    def max_payload(self, elements: int) -> int:
        """Return the most payload bytes to accept in reply to a request for ``elements`` elements.

        That is more than a right answer has; of texts it is always ``MAX_TEXT_BYTES``.
        """
        if STORAGES[self.storage] == TEXT:
            return MAX_TEXT_BYTES
        return _with_room(elements * self.storage.itemsize)

    def decode(self, reply: Frame) -> Bits | BaseException:
        """Return the elements, or the exception that an ``unsupported`` or ``error`` stands for.

        Raises FrameError if the reply is malformed, or is no answer to a request with elements.
        """
        match schema.parse_answer(reply.header):
            case schema.Values(shape=shape, in_memory=True):
                return self._decode_memory(reply, shape)
            case schema.Values(shape=shape):
                return self._decode_payload(shape, reply.payload)
            case answer:
                return _refusal(answer, reply.payload)

    def _decode_payload(self, shape: list[int], payload: bytearray) -> Bits:
        storage = STORAGES[self.storage]
        field = {"name": "", "storage": storage, "shape": shape, "bytes": len(payload)}
        return unpack_arrays([field], payload)[""]

    def _decode_memory(self, reply: Frame, shape: list[int]) -> Bits:
        size = prod(shape) * self.storage.itemsize
        if self.memory is None or self.slot is None or reply.payload or size > self.slot.bytes:
            raise FrameError("an answer in memory that was not offered for it")
        content = np.frombuffer(self.memory.content(self.slot.offset, size), self.storage)
        answers = content.reshape(shape)
        if format_named(self.dtype).bits == 8 * self.storage.itemsize:
            # No copy: whatever the program writes there later is still a valid code of the dtype.
            return answers
        return answers.copy()


@dataclass(frozen=True)
class TensorsDecoder:
    """Decodes replies with named tensors; ``dtypes`` has the dtype of each tensor requested."""

    dtypes: Mapping[str, str]

    def max_payload(self, elements: int) -> int:
        """Return the most payload bytes to accept, with room, for tensors of ``elements`` each."""
        return _with_room(
            elements * sum(_storage(dtype).itemsize for dtype in self.dtypes.values())
        )

    def decode(self, reply: Frame) -> dict[str, Bits] | BaseException:
        """Return tensors by name, or the exception that ``unsupported`` or ``error`` stands for.

        A tensor may be missing. Raises FrameError if the reply is malformed, is no answer to a
        request with tensors, or has a tensor that the request does not name.
        """
        match schema.parse_answer(reply.header):
            case schema.Tensors(tensors=tensors):
                return unpack_arrays(self._fields(tensors), reply.payload)
            case answer:
                return _refusal(answer, reply.payload)

    def _fields(self, tensors: Sequence[schema.ResultShape]) -> ArrayFields:
        fields: dict[str, dict[str, Any]] = {}
        for each in tensors:
            if each.name not in self.dtypes:
                raise FrameError(f"a tensor `{each.name}` that was not asked for")
            if each.name in fields:
                raise FrameError(f"two tensors `{each.name}`")
            storage = _storage(self.dtypes[each.name])
            fields[each.name] = {
                "name": each.name,
                "storage": STORAGES[storage],
                "shape": each.shape,
                "bytes": prod(each.shape) * storage.itemsize,
            }
        return list(fields.values())


def _storage(dtype: str) -> np.dtype[Any]:
    return np.dtype(format_named(dtype).storage)


def _with_room(size: int) -> int:
    """Return a limit above ``size`` bytes, so that an answer of a wrong shape is read too."""
    return max(READ_CHUNK, 2 * size)


def _refusal(answer: schema.AnswerHeader, payload: bytearray) -> BaseException:
    """Return the exception that an ``unsupported`` or ``error`` answer stands for.

    Raises FrameError for any other answer, and for one with a payload.
    """
    match answer:
        case schema.Unsupported(reason=reason):
            refusal: BaseException = Unsupported(plain_line(reason, MAX_TEXT))
        case schema.Error(kind=kind, text=text):
            refusal = remote_error((kind, "Exception"), plain_line(text, MAX_TEXT))
        case _:
            raise FrameError(f"an answer `{answer.answer}` that was not asked for")
    if payload:
        raise FrameError(f"an answer `{answer.answer}` with a payload")
    return refusal
