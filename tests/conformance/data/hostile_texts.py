"""A backend whose every text would take over a terminal, break a table or stop an encoder."""

from __future__ import annotations

from typing import Any

import numpy as np

from oracles.protocol import Bits
from specs.cases import Case

ATTACK = "\x1b]0;owned\x07\x1b[31m\x00\x9b\r\n\u202e"


class _Boom(Exception):
    pass


_Boom.__name__ = f"Boom{ATTACK}".replace("\0", "") + "Z" * 5000


class HostileTexts:
    """Raises an error, or answers a text."""

    name = f"hostile{ATTACK}\ud800"
    version = f"=1{ATTACK}\ud800" + "v" * 5000
    claims = ("onnx-cast:25",)

    def cast(self, case: Case, bits: Bits) -> Bits:
        if case.target == "string":
            return np.full(bits.shape, f"={ATTACK}\ud800", object)
        raise _Boom(f"\r{ATTACK}\ud800" * 3)

    def reproduce(self, case: Case, bits: Any) -> str:
        return f"print('{ATTACK}\ud800')\n```\n"
