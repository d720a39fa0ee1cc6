"""Files on this machine, which appear whole or not at all, and have reached the disk."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from shutil import rmtree
from typing import Any

UNFINISHED = ".unfinished"
"""The suffix of a file that is still being written, or whose writer was killed."""

MAX_LINKS = 40
"""The most links that are followed, as on Linux."""
SPECIAL_KINDS = {
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "an open stream",
}


@dataclass(frozen=True)
class LocalFiles:
    """The file system of this machine. Methods take absolute paths, and raise OSError."""

    def names(self, folder: str) -> list[str]:
        """The names in a folder; none if it does not exist."""
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(folder):
                raise  # It is a file; a path below a file is as missing as any other.
            return []

    def files(self, folder: str) -> list[str]:
        """The paths, relative to a folder, of all files below it."""
        found = (os.path.join(each, name) for each, _, names in os.walk(folder) for name in names)
        return [os.path.relpath(path, folder) for path in found if os.path.isfile(path)]

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder at a path."""
        return os.path.isdir(path)

    def read(self, path: str) -> bytes:
        """The content of a file."""
        with open(path, "rb") as stream:
            return stream.read()

    def open_file(self, path: str) -> Any:
        """Open a file for reading at any position."""
        import pyarrow as pa  # Here, for most commands read no table.

        return pa.OSFile(path)

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        """Open a stream whose bytes appear at the path only if the block ends without error."""
        folder, base = os.path.split(path)
        temporary = os.path.join(folder, f".{base}.{token_hex(8)}{UNFINISHED}")
        os.makedirs(folder, exist_ok=True)
        try:
            with open(temporary, "xb") as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            self._publish(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def end_of_links(self, path: str) -> str:
        """The path to which a path leads if it is a link; raise OSError if it leads nowhere.

        A link of ``/proc`` to an open stream is its own end.
        """
        for _ in range(MAX_LINKS):
            folder = os.path.realpath(os.path.dirname(path))
            if not os.path.islink(path) or folder.startswith("/proc/"):
                return path
            path = os.path.join(folder, os.readlink(path))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def special_kind(self, path: str) -> str:
        """The kind of a special file, such as ``a FIFO``; empty for a file, a folder or nothing."""
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return SPECIAL_KINDS.get(stat.S_IFMT(mode), "")

    def delete_file(self, path: str) -> None:
        """Delete a file; raise FileNotFoundError if there is none."""
        os.unlink(path)

    def delete_folder(self, path: str) -> None:
        """Delete a folder with everything in it; raise FileNotFoundError if there is none."""
        rmtree(path)

    def _publish(self, temporary: str, path: str) -> None:
        """Give a finished file its name; the change has reached the disk on return."""
        os.replace(temporary, path)
        folder = os.open(os.path.dirname(path), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def filled_at_once(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder whose content moves into an empty ``folder`` if the block succeeds.

    If it raises an error, nothing is left. The temporary folder is in the other one, not beside it:
    that may be where a disk is mounted, or the only place where this user may write.
    """
    is_new = not folder.exists()
    folder.mkdir(parents=True, exist_ok=True)
    lent = folder / f".{token_hex(8)}{UNFINISHED}"
    try:
        lent.mkdir()
        yield lent
        for name in sorted(os.listdir(lent)):
            os.rename(lent / name, folder / name)
    finally:
        rmtree(lent, ignore_errors=True)
        if is_new:
            with suppress(OSError):
                folder.rmdir()  # which only an empty folder allows
