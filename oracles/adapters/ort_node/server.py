"""The process of Node.js in which ``server.js`` runs ONNX models."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from oracles.adapters.node_process import PIPES, NodeProcess
from oracles.protocol import Bits
from specs.formats import format_named

PROGRAM = Path(__file__).parent / "server.js"
SIZE = struct.Struct("<I")
"""The size in bytes of a head, a JSON text, which stands before it."""


class SessionRefusedError(RuntimeError):
    """Raised when onnxruntime opens no session of a model."""


class FailedError(RuntimeError):
    """Raised when a session does not run."""


class OrtServer(NodeProcess):
    """A process that keeps sessions of an npm package, on an execution provider."""

    def __init__(self, package: str, provider: str) -> None:
        super().__init__(["-e", PIPES + PROGRAM.read_text(), package, provider])

    def run(self, model: bytes, pair: tuple[str, str], bits: Bits) -> Bits:
        """Return what a model of one input and one output, of these dtypes, makes of ``bits``.

        Raises RefusedError or FailedError with onnxruntime's words.
        """
        source, target = map(format_named, pair)
        head: dict[str, Any] = {"model": len(model), "type": pair[0], "dims": bits.shape}
        content = b""
        if source.kind == "text":
            head["texts"] = bits.ravel().tolist()
        else:
            content = bits.tobytes()
        text = json.dumps(head | {"bytes": len(content)}).encode()
        with self.lock:
            self.send(memoryview(SIZE.pack(len(text)) + text + model))
            self.send(memoryview(content))
            (size,) = SIZE.unpack(self.received(SIZE.size))
            reply = json.loads(self.received(size))
            memory = self.received(reply["bytes"])
        if "refused" in reply:
            raise SessionRefusedError(reply["refused"])
        if "failed" in reply:
            raise FailedError(reply["failed"])
        is_text = target.kind == "text"
        answers = (
            np.array(reply["texts"], object) if is_text else np.frombuffer(memory, target.storage)
        )
        return answers.reshape(reply["dims"])
