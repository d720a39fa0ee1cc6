"""Errors of a backend's process: the exceptions it sent here, and the ways in which it can end."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from traceback import walk_tb
from typing import Any

from oracles.backend.frames import FrameError
from oracles.protocol import Bits, InputsChanged, Unsupported

MAX_TEXT = 20_000
"""The most characters of an error's text that are sent."""
CACHED_CLASSES = 256
SILENT = "was silent for"
"""These words are in the message about a process that did not answer in time."""
ROOT = Path(__file__).resolve().parents[2]
OWN_FOLDERS = tuple(ROOT / each for each in ("specs", "oracles", "reports", "conformance"))
OWN_ADAPTERS = (ROOT / "oracles" / "adapters", ROOT / "conformance" / "families" / "reference.py")


class ProcessDied(BaseException):
    """A backend's process died, timed out or sent an invalid reply.

    It is not an ``Exception``: an exception may be the right answer, a crash never is. ``inputs``
    are the fewest inputs found that cause it, and None if no search was made. ``silent`` says that
    the process timed out.
    """

    def __init__(self, reason: str, inputs: Bits | None = None, silent: bool = False) -> None:
        super().__init__(reason)
        self.inputs = inputs
        self.silent = silent

    def on(self, inputs: Bits) -> ProcessDied:
        """Return the same crash with ``inputs`` as its cause."""
        return ProcessDied(str(self), inputs, self.silent)


class CannotRestart(ProcessDied):
    """The backend's process ended, and no new one could be started."""


class RemoteException(Exception):
    """Stands in for an exception of the backend's process.

    Its class is a subclass with the name of the original class.
    """

    kinds: tuple[str, ...] = ()
    """The names of the original class and of its base classes."""
    place = ""
    """File and line at which an adapter that is not Castigate's raised it, if known."""


class RemoteBaseException(BaseException):
    """Stands in for a BaseException of the backend's process that is no Exception.

    SystemExit, for example, means that the backend tried to exit.
    """


def encode_error(error: BaseException) -> dict[str, Any]:
    """Encode an exception as a header member: ``unsupported``, ``inputs_changed`` or ``raised``."""
    try:
        text = str(error)
    except Exception as worse:
        text = f"its text cannot be had: {type(worse).__name__}"
    if isinstance(error, Unsupported):
        return {"unsupported": text[:MAX_TEXT]}
    if isinstance(error, InputsChanged):
        return {"inputs_changed": True}
    kinds = [kind.__name__ for kind in type(error).__mro__ if kind is not object]
    place = place_of(error)
    return {
        "raised": {"kinds": kinds, "text": text[:MAX_TEXT], **({"place": place} if place else {})}
    }


def place_of(error: BaseException) -> str:
    """Return the innermost file and line of an adapter from which an exception comes.

    Empty if no adapter was called, or one of Castigate's own: its line would say nothing of the
    framework.
    """
    frames = [(frame.f_code.co_filename, line) for frame, line in walk_tb(error.__traceback__)]
    adapters = (name for name, _ in frames if not _is_in(name, OWN_FOLDERS))
    adapter = next(adapters, "")
    if not adapter or any(_is_in(name, OWN_ADAPTERS) for name, _ in frames):
        return ""
    line = [line for name, line in frames if name == adapter][-1]
    return f"{Path(adapter).name}:{line}"


def _is_in(name: str, paths: tuple[Path, ...]) -> bool:
    return any(Path(name).is_relative_to(path) for path in paths)


def decode_error(header: dict[str, Any]) -> BaseException | None:
    """Return the exception in a header, or None; raise FrameError if it is malformed."""
    if "unsupported" in header:
        return Unsupported(str(header["unsupported"]))
    if "inputs_changed" in header:
        return InputsChanged()
    if "raised" not in header:
        return None
    try:
        raised = header["raised"]
        kinds, text = tuple(map(str, raised["kinds"])), str(raised["text"])
        return remote_error(kinds, text, str(raised.get("place", "")))
    except (TypeError, LookupError, ValueError):
        raise FrameError("an error without its kinds and text") from None


def remote_error(kinds: tuple[str, ...], text: str, place: str = "") -> BaseException:
    """Return the stand-in for an exception: a RemoteException if ``kinds`` include ``Exception``.

    Else it is a RemoteBaseException. ``kinds`` has the names of the exception's class and base
    classes, the class first; ``place`` is where an adapter raised it.
    """
    base = RemoteException if "Exception" in kinds else RemoteBaseException
    error = _named_class(kinds[0], base)(text)
    if isinstance(error, RemoteException):
        error.kinds, error.place = kinds, place
    return error  # type: ignore[no-any-return]


def unsendable_answer(kind: str) -> Any:
    """Return a stand-in for an answer that no frame can carry: an object of a class ``kind``."""
    return _named_class(kind, object)()


@lru_cache(CACHED_CLASSES)
def _named_class(name: str, base: type[Any]) -> type[Any]:
    return type(name.replace("\0", ""), (base,), {})
