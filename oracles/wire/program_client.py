"""The client of a program that speaks the wire protocol of docs/protocol.md."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from oracles.backend import resource_limits
from oracles.backend.backend_supervisor import EncodedRequest
from oracles.backend.frames import FrameError, encode_frame, pack_arrays
from oracles.backend.launch_config import LaunchConfig
from oracles.backend.shared_memory import SharedMemory
from oracles.backend.startup_notice import startup_notice
from oracles.backend.supervised_process import ProcessFailed, ProcessTimeout, SupervisedProcess
from oracles.protocol import Bits
from oracles.registry import EXEC
from oracles.wire.reply_checks import ReplyDecoder, TensorsDecoder
from oracles.wire.schema import (
    PROTOCOL,
    AskBitcast,
    AskBye,
    AskCast,
    AskHello,
    AskQuantize,
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
from oracles.wire.stderr_log import StderrLog
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named
from specs.quantized_tensors import operands_of, results_of
from specs.release import VERSION

GOODBYE_SECONDS = 1.0
GOODBYE_NUMBER = 1 << 40
"""The number of the last request, larger than any before."""
MAX_BITCAST_GROWTH = 64
"""How many elements of the narrowest format fit into one of the widest."""
ELEMENT_REQUESTS: Mapping[str, tuple[type[AskCast] | type[AskBitcast], int]] = {
    "cast": (AskCast, 1),
    "bitcast": (AskBitcast, MAX_BITCAST_GROWTH),
}
"""The requests that carry elements, and how many answers there may be for each element."""


class ProgramClient:
    """Starts a program, and speaks with it through its stdin and stdout."""

    def __init__(self, backend: str, config: LaunchConfig, offers_memory: bool = True) -> None:
        self._backend = backend
        self._config = config
        self._command = parse_command(backend)
        can_share = offers_memory and hasattr(os, "memfd_create")
        self._memory = SharedMemory() if can_share else None
        self._uses_memory = False
        self.log = StderrLog()

    def start(self) -> SupervisedProcess:
        """Start the program within its resource limits."""
        inherited = (self._memory.descriptor,) if self._memory else ()
        # Our interpreter sets the limits by a script and then becomes the program: -I and -S keep
        # our modules out of it, and the environment is passed on unchanged.
        launcher = [sys.executable, "-I", "-S", resource_limits.__file__, str(self._config.memory)]
        command = [*launcher, *self._command]
        return SupervisedProcess(command, os.environ, self.log.append, inherited)

    def handshake(self, process: SupervisedProcess) -> Hello:
        """Exchange hellos with the program; raise CastigateError if its answer cannot be used."""
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
        """Encode a cast, bitcast, sweep or quantization as a frame."""
        if request["ask"] == "quantize":
            return _encode_quantize(number, request["case"], arrays)
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
        """Say bye, and give the program a moment to exit by itself."""
        with suppress(ProcessFailed, ProcessTimeout):
            bye = encode_frame(encode_request(AskBye(number=GOODBYE_NUMBER)))
            process.request(bye, GOODBYE_SECONDS, 0)
            process.wait_for_exit(GOODBYE_SECONDS)

    def _sweep_decoder(self, dtype: str, number: int) -> ReplyDecoder:
        """Decode a sweep's answers from shared memory, if the program uses it."""
        if self._memory is None or not self._uses_memory:
            return ReplyDecoder(dtype)
        offset, size = self._memory.slot(number)
        return ReplyDecoder(dtype, self._memory, MemorySlot(offset=offset, bytes=size))

    def _error(self, message: str) -> CastigateError:
        return CastigateError(f"backend `{self._backend}`{message}")


def _encode_quantize(number: int, case: Case, tensors: Mapping[str, Bits]) -> EncodedRequest:
    """Encode the operation of a case on named tensors as a frame."""
    dtypes, results = operands_of(case), results_of(case)
    header = AskQuantize(
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
    """Split the command of an ``exec:`` backend as a shell would; no shell ever runs it."""
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
    """Describe a case as a header does."""
    return WireCase(
        id=case.id,
        document=case.document,
        version=case.version,
        source=case.source,
        target=case.target,
        mode=case.mode,
    )
