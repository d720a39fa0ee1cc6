"""The requests to a party, which writes or reads containers: for bytes, a tensor or statements."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.backend.replies import malformed
from oracles.backend.requests import AboutTensor, MethodRequest
from oracles.protocol import Bits, Tensor


class WriteContainer(AboutTensor):
    """Write one tensor into a container, in its own memory layout. The reply holds the bytes."""

    method = "write_container"
    lacks = "writes no containers"

    def checked(self, answer: Any) -> Bits:
        """Return an answer that is a row of bytes; raise ``Unanswered`` for any other."""
        if not isinstance(answer, np.ndarray) or answer.dtype != np.uint8 or answer.ndim != 1:
            raise malformed("the answer is no row of bytes")
        return answer


class ReadContainer(AboutTensor):
    """Read the tensor in a container's bytes. The reply holds a ``Tensor``."""

    method = "read_container"
    lacks = "reads no containers"

    def checked(self, answer: Any) -> Tensor:
        """Return an answer that is a ``Tensor``; raise ``Unanswered`` for any other."""
        if not isinstance(answer, Tensor):
            raise malformed(f"the answer is {type(answer).__name__}, not a Tensor")
        return answer


class WriteStatements(MethodRequest):
    """Write the statements of a script that writes a container. The reply holds the text."""

    method = "reproduce_write"
    lacks = "writes no script of this"


class ReadStatements(MethodRequest):
    """Write the statements of a script that reads a container. The reply holds the text."""

    method = "reproduce_read"
    lacks = "writes no script of this"
