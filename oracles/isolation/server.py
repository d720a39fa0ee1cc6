"""``python -m oracles.isolation.server``: one backend, asked and answering through two pipes.

The pipes are the backend's alone: what it prints goes to stderr. It knows nothing of who asks; it
ends when nothing more can be asked.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from io import BufferedReader, FileIO
from typing import Any

import numpy as np

from oracles.isolation.frames import (
    Frame,
    FrameError,
    is_carried,
    packed,
    read_frame,
    unpacked,
    written,
)
from oracles.isolation.message_codec import (
    call_of,
    case_of,
    hello_words,
    layouts_of,
    returned_words,
)
from oracles.isolation.remote_errors import told
from oracles.isolation.resource_limits import (
    die_with_parent,
    is_nearly_full,
    leave_no_core,
    limit_memory,
)
from oracles.memory_layouts import placed
from oracles.protocol import Bits, Returned
from oracles.registry import load_backend
from specs.cases import Case
from specs.errors import CastigateError
from specs.release import VERSION

BUFFERED = 1 << 17
BETWEEN_COLLECTIONS = (100_000, 10, 10)
"""What a framework compiles stays as well, and is thousands of objects for each program."""
Answer = tuple[dict[str, Any], dict[str, Bits]]


class Server:
    """An oracle that is asked by frames."""

    def __init__(self, oracle: Any) -> None:
        self._oracle = oracle
        self._bound: tuple[Case, Bits, Callable[[], Bits]] | None = None

    def answered(self, question: Frame) -> list[bytes | bytearray]:
        """The frame that answers another; whatever the oracle raises is an answer."""
        number = {"number": question.header["number"]}
        try:
            words, arrays = self._answer(question.header, _arrays(question))
            fields, payload = packed(arrays)
            return written(number | words | {"arrays": fields}, payload)
        except BaseException as error:
            return written(number | told(error) | {"full": is_nearly_full()})

    def _answer(self, header: dict[str, Any], arrays: dict[str, Bits]) -> Answer:
        ask, oracle = header["ask"], self._oracle
        if ask == "identity":
            return _array(oracle.identity(header["dtype"], arrays[""]))
        case = case_of(header["case"])
        match ask:
            case "cast" | "bitcast":
                return _array(getattr(oracle, ask)(case, arrays[""]))
            case "casts":
                return {"many": True}, dict(self._casts(case, arrays))
            case "bind":
                self._bind(case, arrays[""])
                return {}, {}
            case "bound":
                return _array(self._called(case, arrays[""]))
            case "road":
                return {"text": str(oracle.road(case))}, {}
            case "reproduce":
                return {"text": str(oracle.reproduce(case, arrays[""]))}, {}
            case "bitcast_shares_memory":
                return {"flag": bool(oracle.bitcast_shares_memory(case, arrays[""]))}, {}
            case "call":
                return _returned(oracle.call(case, call_of(header["call"]), arrays))
        raise FrameError(f"nobody knows how to {ask!r}")

    def _casts(self, case: Case, arrays: dict[str, Bits]) -> Iterator[tuple[str, Bits]]:
        """The answers to one tensor after another, up to the first that is none."""
        for name, bits in arrays.items():
            try:
                answer = self._oracle.cast(case, bits)
            except BaseException:
                return
            if not is_carried(answer):
                return
            # A copy: an oracle may use one buffer for all its answers.
            yield name, answer.copy()

    def _bind(self, case: Case, bits: Bits) -> Callable[[], Bits]:
        self._bound = None
        bits = np.array(bits)
        call = self._oracle.bind(case, bits)
        self._bound = case, bits, call
        return call  # type: ignore[no-any-return]

    def _called(self, case: Case, bits: Bits) -> Bits:
        """A bound call's answer; it is bound anew where another case or length comes."""
        if self._bound is not None:
            bound, buffer, call = self._bound
            if (bound, buffer.shape, buffer.dtype) == (case, bits.shape, bits.dtype):
                np.copyto(buffer, bits)
                return call()
        return self._bind(case, bits)()


def _arrays(question: Frame) -> dict[str, Bits]:
    """What is asked about, lying in memory as it did where it was asked."""
    arrays = unpacked(question.header.get("arrays", []), question.payload)
    for name, layout in layouts_of(question.header.get("layouts", {})).items():
        arrays[name] = placed(arrays[name], layout)
    return arrays


def _array(answer: object) -> Answer:
    if is_carried(answer):
        return {}, {"": answer}  # type: ignore[dict-item]
    return {"odd": _kind(answer)}, {}


def _returned(returned: object) -> Answer:
    if not isinstance(returned, Returned):
        return {"odd": _kind(returned)}, {}
    words, arrays = returned_words(returned)
    odd = [_kind(array) for array in arrays.values() if not is_carried(array)]
    return ({"odd": odd[0]}, {}) if odd else ({"returned": words}, arrays)


def _kind(thing: object) -> str:
    """What stands in an answer's place, by its type."""
    if type(thing) is np.ndarray:
        return f"ndarray of {thing.dtype}"
    return type(thing).__name__


def main(name: str, memory: int, questions: int, answers: int) -> None:
    """Serve a backend until nobody asks any more."""
    die_with_parent()
    leave_no_core()
    limit_memory(memory)
    for pipe in (questions, answers):
        # A child of the backend's must neither answer nor keep the pipes open.
        os.set_inheritable(pipe, False)
        os.register_at_fork(after_in_child=partial(os.close, pipe))
    read = BufferedReader(FileIO(questions, closefd=False), BUFFERED).read
    send = partial(_send, answers)
    send(written({"castigate": VERSION}))
    # What a framework loads stays: to look for garbage in it takes a tenth of the loading.
    gc.disable()
    try:
        backend = load_backend(name)
    except CastigateError as error:
        send(written({"failed": str(error)}))
        return
    gc.freeze()
    gc.set_threshold(*BETWEEN_COLLECTIONS)
    gc.enable()
    server = Server(backend.oracle)
    send(written({"hello": hello_words(backend.oracle)}))
    while (question := read_frame(read)) is not None:
        send(server.answered(question))


def _send(pipe: int, pieces: list[bytes | bytearray]) -> None:
    for piece in pieces:
        rest = memoryview(piece)
        while rest:
            rest = rest[os.write(pipe, rest) :]


if __name__ == "__main__":
    code = 0
    try:
        main(sys.argv[1], *map(int, sys.argv[2:5]))
    except (FrameError, OSError) as error:
        code = 2
        with suppress(OSError, ValueError):  # stderr may be closed as well
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    # Frameworks that are torn down may hang; there is nothing that they could still save.
    os._exit(code)
