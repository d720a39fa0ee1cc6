"""The only function that a Dask scheduler sees; it imports nothing, because the scheduler loads it.

Functions and arguments travel as bytes, which a worker unpickles in the thread of the call.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any


def call(payload: bytes) -> bytes:
    """Call the function in ``payload``; return its result, or the Exception it raises, pickled."""
    try:
        function, arguments = pickle.loads(payload)
        result = function(*arguments)
    except Exception as error:
        result = error
    return pickle.dumps(result)


def payload_of(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Return the bytes that make ``call`` call a function with these arguments."""
    return pickle.dumps((function, arguments))
