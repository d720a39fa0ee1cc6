"""Files and folders, on this machine or in an object store, which appear whole or not at all."""

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
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from specs.errors import CastigateError, require_regular

if TYPE_CHECKING:
    from reports.run_store.object_store import ObjectStore

MEMORY = "memory"
"""The protocol of objects that only this process can see."""
OTHER_FILE = "give the name of a file"
RESUME_ADVICE = "what was finished before is kept, and --resume goes on from there"


@dataclass(frozen=True)
class Folder:
    """A folder on some file system. Methods take paths relative to it.

    They raise CastigateError if the file system fails, except ``open_file``. ``display_name`` is
    what the user called the folder, and what messages call it. A Folder can be pickled.
    """

    display_name: str
    system: LocalFiles | ObjectStore
    path: str

    @property
    def is_local(self) -> bool:
        """Whether the folder is on this machine rather than in an object store."""
        return isinstance(self.system, LocalFiles)

    @property
    def is_in_memory(self) -> bool:
        """Whether only this process can see the folder, and only until the process ends."""
        return not isinstance(self.system, LocalFiles) and self.system.protocol == MEMORY

    @property
    def exists(self) -> bool:
        """Whether there is such a folder; in an object store, whether anything is in it."""
        with explain_read_errors(self, ""):
            return self.system.is_folder(self.path)

    def display_path(self, name: str) -> str:
        """Return the path of a file in the folder as the user would write it."""
        return f"{self.display_name.rstrip('/')}/{name}" if name else self.display_name

    def names(self, folder: str = "") -> list[str]:
        """Return the sorted names in ``folder``, or in this folder if that is empty.

        There are none if the folder does not exist.
        """
        with explain_read_errors(self, folder):
            return sorted(self.system.names(self._at(folder)))

    def files(self) -> list[str]:
        """Return the sorted relative paths of all files in this folder and its subfolders."""
        with explain_read_errors(self, ""):
            return sorted(self.system.files(self.path))

    def read(self, name: str) -> bytes | None:
        """Return the content of a file, or None if there is no such file."""
        try:
            with explain_read_errors(self, name):
                return self.system.read(self._at(name))
        except FileNotFoundError:
            return None

    def open_file(self, name: str) -> Any:
        """Open a file as an Arrow file for reading at any position; raise OSError if that fails."""
        return self.system.open_file(self._at(name))

    @contextmanager
    def new_file(self, name: str, advice: str = RESUME_ADVICE) -> Iterator[Any]:
        """Open a stream whose bytes appear under the name only if the block ends without error.

        The message of a CastigateError ends with ``advice``.
        """
        with (
            explain_write_errors(self, name, advice),
            self.system.new_file(self._at(name)) as stream,
        ):
            yield stream

    def write(self, name: str, data: bytes, advice: str = RESUME_ADVICE) -> None:
        """Write a whole file, replacing one of that name in one step.

        The message of a CastigateError ends with ``advice``.
        """
        with self.new_file(name, advice) as stream:
            stream.write(data)

    def remove_file(self, name: str) -> None:
        """Remove a file, if it exists."""
        with explain_write_errors(self, name), suppress(FileNotFoundError):
            self.system.delete_file(self._at(name))

    def remove_unfinished(self, folder: str = "") -> None:
        """Remove the files that killed writers left in ``folder``, or here if that is empty."""
        for name in self.names(folder):
            if is_unfinished(name):
                self.remove_file(f"{folder}/{name}".lstrip("/"))

    def remove_folder(self, folder: str) -> None:
        """Remove a subfolder with everything in it, if it exists."""
        with explain_write_errors(self, folder), suppress(FileNotFoundError):
            self.system.delete_folder(self._at(folder))

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path


def is_unfinished(name: str) -> bool:
    """Return whether a name is that of a file that was never completed."""
    return name.endswith(UNFINISHED)


def folder_at(out: str) -> Folder:
    """Return the folder at a path or URL (``s3://…``, ``gs://…``, ``file://…``).

    It need not exist. Raise CastigateError for a text that names no folder, and where ``store_at``
    does.
    """
    shown = out.encode("utf-8", "backslashreplace").decode()
    if not out or "\0" in out or shown != out:
        raise CastigateError(f"`{shown}` does not name a folder; give a path or a URL")
    if "://" not in out:
        return Folder(out.rstrip("/") or "/", LocalFiles(), os.path.abspath(out))
    if out.startswith("file://"):
        url = urlsplit(out)
        if url.netloc or not url.path:
            raise CastigateError(f"`{out}` does not name a folder; write file:///PATH, or the path")
        return Folder(out.rstrip("/"), LocalFiles(), os.path.abspath(unquote(url.path)))
    from reports.run_store.object_store import store_at

    store, path = store_at(out)
    return Folder(out.rstrip("/"), store, path)


def check_outlives(folder: Folder) -> None:
    """Raise CastigateError if only this process can see the folder, not its workers."""
    if folder.is_in_memory:
        raise CastigateError(
            f"`{folder.display_name}` is memory of this process alone, which worker processes "
            "cannot reach and which ends with it; give a folder or the URL of an object store"
        )


def file_to_write(file: str) -> tuple[Folder, str]:
    """Return the folder and the name under which to write a file that a user named.

    A link is followed, as by the ``>`` of a shell: its target is written, and the link stays. Raise
    CastigateError for what ``folder_at`` refuses, for memory of this process, a missing folder of
    this machine and a loop of links, and for a special file such as a FIFO, whose place the renamed
    file would take.
    """
    head, slash, name = file.rpartition("/")
    if head.endswith(":/"):
        head += slash  # A URL of a bucket alone, which ``folder_at`` refuses.
    folder = folder_at(head or slash or ".")
    check_outlives(folder)
    if not isinstance(folder.system, LocalFiles):
        return folder, name
    if not folder.system.is_folder(folder.path):
        raise CastigateError(
            f"cannot write {file}: there is no folder {folder.display_name}; make it,"
            " or name another file"
        )
    path, shown = f"{folder.path.rstrip('/')}/{name}", folder.display_path(name)
    with explain_write_errors(folder, name, OTHER_FILE):
        end = folder.system.end_of_links(path)
        kind = folder.system.special_kind(end)
        if folder.system.is_folder(end):
            raise CastigateError(f"`{shown}` is a folder; {OTHER_FILE}")
    if kind:
        raise CastigateError(f"`{shown}` is {kind}, which a file would replace; {OTHER_FILE}")
    if end == path:
        return folder, name
    target, name = os.path.split(end)
    return Folder(target, folder.system, target), name


def reason_of(error: BaseException) -> str:
    """Return the reason for an error in one line.

    Of an error of the system it has no names of files, because messages of Castigate name the file
    themselves.
    """
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return next(iter(str(error).splitlines()), type(error).__name__)[:300]


@contextmanager
def explain_read_errors(folder: Folder, name: str) -> Iterator[None]:
    """Turn an OSError in the block into a CastigateError; let FileNotFoundError pass."""
    try:
        yield
    except FileNotFoundError:
        raise
    except OSError as error:
        where, reason = folder.display_path(name), reason_of(error)
        raise CastigateError(f"cannot read {where}: {reason}") from None


@contextmanager
def explain_write_errors(folder: Folder, name: str, advice: str = RESUME_ADVICE) -> Iterator[None]:
    """Turn an OSError in the block into a CastigateError with the file's name and ``advice``."""
    try:
        yield
    except OSError as error:
        where, reason = folder.display_path(name), reason_of(error)
        raise CastigateError(f"cannot write {where}: {reason}; {advice}") from None


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
        """Return the names in a folder; none if it does not exist."""
        try:
            return os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            if os.path.lexists(folder):
                raise  # It is a file; a path below a file is as missing as any other.
            return []

    def files(self, folder: str) -> list[str]:
        """Return the paths, relative to a folder, of all files below it."""
        found = (os.path.join(each, name) for each, _, names in os.walk(folder) for name in names)
        return [os.path.relpath(path, folder) for path in found if os.path.isfile(path)]

    def is_folder(self, path: str) -> bool:
        """Return whether there is a folder at a path."""
        return os.path.isdir(path)

    def read(self, path: str) -> bytes:
        """Return the content of a file."""
        require_regular(path)
        with open(path, "rb") as stream:
            return stream.read()

    def open_file(self, path: str) -> Any:
        """Open a file as an Arrow file, to be read at any position."""
        import pyarrow as pa  # Here, for most commands read no table.

        require_regular(path)
        return pa.OSFile(path)

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        """Open a stream whose bytes appear at the path only if the block ends without error.

        They need not have reached the disk then. Waiting for that would take a tenth of a quick
        run; what a power cut damages is found when it is read, and a run can be run again.
        """
        folder, base = os.path.split(path)
        temporary = os.path.join(folder, f".{base}.{token_hex(8)}{UNFINISHED}")
        os.makedirs(folder, exist_ok=True)
        try:
            with open(temporary, "xb") as stream:
                yield stream
            os.replace(temporary, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary)
            raise

    def end_of_links(self, path: str) -> str:
        """Return where a link leads in the end, or a path itself if it is no link.

        The end need not exist. A link of ``/proc`` to an open stream is its own end. Raise OSError
        for more than ``MAX_LINKS`` links, as in a loop.
        """
        for _ in range(MAX_LINKS + 1):
            folder = os.path.realpath(os.path.dirname(path))
            if not os.path.islink(path) or folder.startswith("/proc/"):
                return path
            path = os.path.join(folder, os.readlink(path))
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))

    def special_kind(self, path: str) -> str:
        """Return the kind of a special file, such as ``a FIFO``; empty for anything else."""
        try:
            mode = os.lstat(path).st_mode
        except (FileNotFoundError, NotADirectoryError):
            return ""
        return SPECIAL_KINDS.get(stat.S_IFMT(mode), "")

    def delete_file(self, path: str) -> None:
        """Delete a file; raise FileNotFoundError if it does not exist."""
        os.unlink(path)

    def delete_folder(self, path: str) -> None:
        """Delete a folder with everything in it; raise FileNotFoundError if it does not exist."""
        rmtree(path)


@contextmanager
def filled_at_once(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder whose content moves into an empty ``folder`` if the block succeeds.

    If the block raises an error, nothing is left. The temporary folder is inside ``folder``, not
    beside it: ``folder`` may be where a disk is mounted, or the only place where this user may
    write.
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
