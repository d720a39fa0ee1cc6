"""Folders on this machine or in an object store, whose files appear whole or not at all."""

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
"""The suffix of a file that is still being written, or whose writer was killed."""
RESUME_ADVICE = "what was finished before is kept, and --resume goes on from there"


@dataclass(frozen=True)
class Folder:
    """A folder on some file system. Methods take the relative paths of what is in it.

    ``display_name`` is what the user called it, and what messages call it.
    """

    display_name: str
    system: Any
    path: str

    @property
    def is_local(self) -> bool:
        """Whether it is on this machine rather than in an object store."""
        return isinstance(self.system, LocalFileSystem)

    def display_path(self, name: str) -> str:
        """The path of a file as the user would write it."""
        return f"{self.display_name.rstrip('/')}/{name}" if name else self.display_name

    def names(self, folder: str = "") -> list[str]:
        """The sorted names in a subfolder; none if it does not exist."""
        with explain_read_errors(self, folder):
            found = self.system.get_file_info(FileSelector(self._at(folder), allow_not_found=True))
        return sorted(info.base_name for info in found if info.path.rstrip("/") != self._at(folder))

    def read(self, name: str) -> bytes | None:
        """The content of a file, or None if there is no such file."""
        try:
            with (
                explain_read_errors(self, name),
                self.system.open_input_stream(self._at(name)) as stream,
            ):
                return bytes(stream.read())
        except FileNotFoundError:
            return None

    def open_file(self, name: str) -> Any:
        """Open a file for reading at any position."""
        return self.system.open_input_file(self._at(name))

    @contextmanager
    def new_file(self, name: str, advice: str = RESUME_ADVICE) -> Iterator[Any]:
        """Open a stream whose bytes appear under the name only if the block ends without error."""
        folder, _, base = name.rpartition("/")
        temporary = f"{folder}/.{base}.{token_hex(8)}{UNFINISHED}".lstrip("/")
        with explain_write_errors(self, name, advice):
            self.system.create_dir(self._at(folder), recursive=True)
            try:
                with self._create(temporary) as stream:
                    yield stream
                self._rename(temporary, name)
            except BaseException:
                with suppress(OSError):
                    self.system.delete_file(self._at(temporary))
                raise

    def write(self, name: str, data: bytes, advice: str = RESUME_ADVICE) -> None:
        """Write a whole file, replacing one of that name in one step."""
        with self.new_file(name, advice) as stream:
            stream.write(data)

    def remove_unfinished(self, folder: str = "") -> None:
        """Remove the files that killed writers left in a subfolder."""
        for name in self.names(folder):
            if is_unfinished(name):
                with explain_write_errors(self, name), suppress(FileNotFoundError):
                    self.system.delete_file(self._at(f"{folder}/{name}".lstrip("/")))

    def remove_folder(self, folder: str) -> None:
        """Remove a subfolder with everything in it, if it exists."""
        with explain_write_errors(self, folder), suppress(FileNotFoundError):
            self.system.delete_dir(self._at(folder))

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path

    @contextmanager
    def _create(self, name: str) -> Iterator[Any]:
        """Create a file; a local one has reached the disk when the block ends."""
        if not self.is_local:
            with self.system.open_output_stream(self._at(name)) as stream:
                yield stream
            return
        with open(self._at(name), "xb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())

    def _rename(self, name: str, new: str) -> None:
        """Rename a file; a local rename has reached the disk on return."""
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
    """Whether a file of this name was never completed."""
    return name.endswith(UNFINISHED)


def folder_at(out: str) -> Folder:
    """The folder at a path or URL (``s3://…``, ``gs://…``, ``file://…``); it need not exist."""
    shown = out.encode("utf-8", "backslashreplace").decode()
    if not out or "\0" in out or shown != out:
        raise CastigateError(f"`{shown}` does not name a folder; give a path or a URL")
    if "://" not in out:
        return Folder(out.rstrip("/") or "/", LocalFileSystem(), os.path.abspath(out))
    try:
        system, path = FileSystem.from_uri(out)
    except (OSError, ValueError, ArrowException, ImportError) as error:
        raise CastigateError(f"`{out}` cannot be reached as a folder: {reason_of(error)}") from None
    return Folder(out.rstrip("/"), system, path.rstrip("/"))


def reason_of(error: BaseException) -> str:
    """The system's reason in one line, without file names, which our messages give already."""
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return next(iter(str(error).splitlines()), type(error).__name__)[:300]


@contextmanager
def explain_read_errors(folder: Folder, name: str) -> Iterator[None]:
    """Turn an OSError into a CastigateError; leave FileNotFoundError to the caller."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        where, reason = folder.display_path(name), reason_of(error)
        raise CastigateError(f"cannot read {where}: {reason}") from None


@contextmanager
def explain_write_errors(folder: Folder, name: str, advice: str = RESUME_ADVICE) -> Iterator[None]:
    """Turn an OSError into a CastigateError that ends with advice."""
    try:
        yield
    except OSError as error:
        where, reason = folder.display_path(name), reason_of(error)
        raise CastigateError(f"cannot write {where}: {reason}; {advice}") from None
