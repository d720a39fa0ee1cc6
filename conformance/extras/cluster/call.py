"""The only function that a Dask scheduler sees; it imports nothing, because the scheduler loads it.

Functions and arguments travel as bytes, which a worker unpickles in the thread of the call.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any


def call(payload: bytes) -> bytes:
    """Call the function in ``payload``; return its result, or the Exception it raises, pickled.

    An Exception that does not survive pickling becomes a RuntimeError with its name and text.
    """
    try:
        function, arguments = pickle.loads(payload)
        return pickle.dumps(function(*arguments))
    except Exception as error:
        return _pickled(error)


def _pickled(error: Exception) -> bytes:
    try:
        pickled = pickle.dumps(error)
        pickle.loads(pickled)
    except Exception:
        return pickle.dumps(RuntimeError(f"{type(error).__name__}: {error}"))
    return pickled


def payload_of(function: Callable[..., Any], *arguments: Any) -> bytes:
    """Return the bytes by which ``call`` calls ``function`` with these arguments."""
    return pickle.dumps((function, arguments))
