"""A folder on this machine or in an object store, whose files appear whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from pyarrow import ArrowException
from pyarrow.fs import FileSelector, FileSystem, LocalFileSystem

from specs.errors import CastigateError

UNFINISHED = ".unfinished"
"""How the name of a file ends that is still being written, or whose writer was killed."""
KEPT = "what was finished before is kept, and --resume goes on from there"


@dataclass(frozen=True)
class Place:
    """A folder under the name the user gave it; what is in it is named by relative paths."""

    given: str
    system: Any
    path: str

    @property
    def is_local(self) -> bool:
        """Whether this machine's disks hold it."""
        return isinstance(self.system, LocalFileSystem)

    def named(self, name: str) -> str:
        """A file as the user would write it."""
        return f"{self.given.rstrip('/')}/{name}" if name else self.given

    def names(self, folder: str = "") -> list[str]:
        """The names in a folder in their order; none if there is no such folder."""
        with reading(self, folder):
            found = self.system.get_file_info(FileSelector(self._at(folder), allow_not_found=True))
        return sorted(info.base_name for info in found if info.path.rstrip("/") != self._at(folder))

    def read(self, name: str) -> bytes | None:
        """All of a file, or nothing if there is none."""
        try:
            with reading(self, name), self.system.open_input_stream(self._at(name)) as stream:
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def opened(self, name: str) -> Any:
        """A file to read from anywhere in it."""
        return self.system.open_input_file(self._at(name))

    @contextmanager
    def writing(self, name: str, advice: str = KEPT) -> Iterator[Any]:
        """A stream whose bytes appear under the name when the block ends well, and never else."""
        folder, _, base = name.rpartition("/")
        temporary = f"{folder}/.{base}.{token_hex(8)}{UNFINISHED}".lstrip("/")
        with writing(self, name, advice):
            self.system.create_dir(self._at(folder), recursive=True)
            try:
                with self._created(temporary) as stream:
                    yield stream
                self._renamed(temporary, name)
            except BaseException:
                with suppress(OSError):
                    self.system.delete_file(self._at(temporary))
                raise

    def write(self, name: str, data: bytes, advice: str = KEPT) -> None:
        """Put a whole file under a name, in the place of one that is there."""
        with self.writing(name, advice) as stream:
            stream.write(data)

    def clean(self, folder: str = "") -> None:
        """Remove what killed writers have left in a folder."""
        for name in self.names(folder):
            if is_unfinished(name):
                with writing(self, name), suppress(FileNotFoundError):
                    self.system.delete_file(self._at(f"{folder}/{name}".lstrip("/")))

    def remove_folder(self, folder: str) -> None:
        """Remove a folder with all that is in it; it may be gone already."""
        with writing(self, folder), suppress(FileNotFoundError):
            self.system.delete_dir(self._at(folder))

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path

    @contextmanager
    def _created(self, name: str) -> Iterator[Any]:
        """A new file; on a disk it has reached the disk when the block ends."""
        if not self.is_local:
            with self.system.open_output_stream(self._at(name)) as stream:
                yield stream
            return
        with open(self._at(name), "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())

    def _renamed(self, name: str, new: str) -> None:
        if not self.is_local:
            self.system.move(self._at(name), self._at(new))
            return
        os.replace(self._at(name), self._at(new))
        folder = os.open(os.path.dirname(self._at(new)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def is_unfinished(name: str) -> bool:
    """Whether a name is that of a file that never got its own."""
    return name.endswith(UNFINISHED)


def place_of(out: str) -> Place:
    """The folder of a path or a URL (``s3://…``, ``gs://…``, ``file://…``), whether it is there."""
    shown = out.encode("utf-8", "backslashreplace").decode()
    if not out or "\0" in out or shown != out:
        raise CastigateError(f"`{shown}` is no name of a folder; give a path or a URL")
    if "://" not in out:
        return Place(out.rstrip("/") or "/", LocalFileSystem(), os.path.abspath(out))
    try:
        system, path = FileSystem.from_uri(out)
    except (OSError, ValueError, ArrowException, ImportError) as error:
        raise CastigateError(f"`{out}` is no folder that can be reached: {why(error)}") from None
    return Place(out.rstrip("/"), system, path.rstrip("/"))


def why(error: BaseException) -> str:
    """What the system says, without the names of files, which the message has already."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return next(iter(str(error).splitlines()), type(error).__name__)[:300]


@contextmanager
def reading(place: Place, name: str) -> Iterator[None]:
    """Turn what the system refuses into one line; that a file is missing is for the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        raise CastigateError(f"cannot read {place.named(name)}: {why(error)}") from None


@contextmanager
def writing(place: Place, name: str, advice: str = KEPT) -> Iterator[None]:
    """Turn what the system refuses into one line that says what to do."""
    try:
        yield
    except OSError as error:
        raise CastigateError(f"cannot write {place.named(name)}: {why(error)}; {advice}") from None
