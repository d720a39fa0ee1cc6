"""A stand-in for a vendor's program: reads hex patterns of int8 and casts them to int4.

It knows nothing of Castigate. With ``clamp`` on the command line it clamps what it ought to wrap.
"""

from __future__ import annotations

import json
import sys

CASE = "onnx-cast:25/int8/int4"

for line in sys.stdin:
    code = int(line, 16)
    value = code - 256 if code & 0x80 else code
    if "clamp" in sys.argv:
        value = max(-8, min(7, value))
    print(json.dumps({"case": CASE, "input": line.strip(), "output": f"0x{value & 0xF:x}"}))
