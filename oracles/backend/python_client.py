"""The client of ``oracles.backend.server``, which serves a backend that is written in Python."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from math import prod
from typing import Any

import numpy as np

from oracles.backend.backend_supervisor import EncodedRequest
from oracles.backend.frames import (
    MAX_PAYLOAD,
    Frame,
    FrameError,
    encode_frame,
    pack_arrays,
    unpack_arrays,
)
from oracles.backend.launch_config import LaunchConfig
from oracles.backend.message_codec import (
    OracleDescription,
    decode_description,
    decode_returned,
    encode_layouts,
)
from oracles.backend.remote_errors import decode_error, unsendable_answer
from oracles.backend.shared_memory import SharedMemory
from oracles.backend.supervised_process import ProcessFailed, SupervisedProcess, startup_notice
from oracles.protocol import Bits, Tensor
from oracles.tensor_batch import BatchAnswers
from specs.errors import CastigateError
from specs.release import VERSION


class PythonClient:
    """Starts our own server under some interpreter, and speaks with it."""

    def __init__(self, backend: str, config: LaunchConfig) -> None:
        self._backend = backend
        self._config = config
        self._memory = SharedMemory() if hasattr(os, "memfd_create") else None

    def start(self) -> SupervisedProcess:
        """Start a process that loads the backend; raise CastigateError if that is impossible."""
        config = self._config
        try:
            inherited = (self._memory.descriptor,) if self._memory else ()
            command = config.command(self._backend)
            return SupervisedProcess(command, config.environment, descriptors=inherited)
        except OSError as error:
            raise self._error(f": {config.interpreter}: {error.strerror}") from None

    def handshake(self, process: SupervisedProcess) -> OracleDescription:
        """Read the server's version and the description of its oracle.

        Raises CastigateError if the versions differ or the backend cannot be loaded.
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
        """Encode a request as a frame."""
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
        """Offer a slot of the shared memory for the answers to consecutive patterns."""
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
    """Decode the answer, or the exception that was raised instead."""
    arrays = unpack_arrays(reply.header.get("arrays", []), reply.payload)
    return _decode_answer(request, reply.header, arrays)


def _decode_answer(
    request: Mapping[str, Any], header: dict[str, Any], arrays: Mapping[str, Bits]
) -> Any:
    """Decode an answer: a text, a boolean, the result of a call, an array, or several of these.

    An answer to several requests is a list with a list for each, which has an answer for each case;
    None stands for an answer that has to be requested again.
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
        if "unsendable" in header:
            return unsendable_answer(str(header["unsendable"]))
        if "many" in header:
            return arrays
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
    """Decode the answers to one request, one for each case; cases on one road share an answer."""
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
