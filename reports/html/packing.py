"""Data that a page loads with a script element, which works from a disk too, where fetch does not.

A file holds one call of ``castigate.receive`` with deflated JSON in base64: whatever a backend says
is in it, none of it can be read as code.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from typing import Any


def packed(name: str, data: Any) -> bytes:
    """The bytes of a data file, the same for the same data."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), check_circular=False)
    squeezed = b64encode(zlib.compress(text.encode(), 9)).decode()
    return f'castigate.receive({json.dumps(name)},\n"{squeezed}");\n'.encode()
