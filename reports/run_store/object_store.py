"""Objects in a store that fsspec reaches (``s3://``, ``gs://``, ``memory://``).

A store has no rename, but puts an object in one step: readers see the old object or the new one.
So a file is written on this machine first, and uploaded when it is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from tempfile import TemporaryDirectory
from typing import Any

from specs.errors import CastigateError

S3 = ("s3", "s3a")
S3_OPTIONS: Mapping[str, Any] = {
    # botocore waits 60 s for a connection, five times; a server that is there answers sooner.
    "config_kwargs": {
        "connect_timeout": 5,
        "read_timeout": 15,
        "retries": {"mode": "standard", "total_max_attempts": 3},
    },
}
INSTALL_ADVICE: Mapping[str, str] = {
    **dict.fromkeys(S3, "pip install 'castigate[scale]'"),
    **dict.fromkeys(("gs", "gcs"), "pip install gcsfs"),
}
NEEDS_FSSPEC = "pip install fsspec and the package of the store"
NO_BUCKET = "NoSuchBucket"


class StoreError(OSError):
    """The error of a request that the object store refused or did not answer.

    Its text says why, and what to check.
    """


@dataclass(frozen=True)
class ObjectStore:
    """The objects that one protocol reaches. Methods take paths without it, and raise OSError.

    An instance can be pickled: each process connects by itself, with the credentials of its
    environment.
    """

    protocol: str

    @cached_property
    def system(self) -> Any:
        """The fsspec file system. It caches no listings, because other processes write too."""
        import fsspec

        options = S3_OPTIONS if self.protocol in S3 else {}
        with _explained(self.protocol):
            system = fsspec.filesystem(self.protocol, use_listings_cache=False, **options)
        if self.protocol in S3:
            # botocore retries already; five retries of three attempts would take minutes.
            system.retries = 1
        return system

    def __getstate__(self) -> dict[str, Any]:
        return {"protocol": self.protocol}

    def names(self, folder: str) -> list[str]:
        """Return the names in a folder; none if it does not exist."""
        try:
            with _explained(self.protocol):
                paths = self.system.ls(folder, detail=False)
        except FileNotFoundError:
            return []
        return [path.rstrip("/").rpartition("/")[2] for path in paths if path.rstrip("/") != folder]

    def files(self, folder: str) -> list[str]:
        """Return the paths, relative to a folder, of all objects below it."""
        with _explained(self.protocol):
            paths: list[str] = self.system.find(folder)
        return [path.removeprefix(f"{folder}/") for path in paths]

    def is_folder(self, path: str) -> bool:
        """Return whether objects lie below a path."""
        return bool(self.names(path))

    def read(self, path: str) -> bytes:
        """Return the content of an object; raise FileNotFoundError if the store lacks it."""
        with _explained(self.protocol):
            return bytes(self.system.cat_file(path))

    def open_file(self, path: str) -> Any:
        """Open an object as an Arrow file; only what is read, at any position, is downloaded."""
        import pyarrow as pa  # Here, for most commands read no table.

        with _explained(self.protocol):
            return pa.PythonFile(_Reader(self.protocol, self.system.open(path, "rb")), mode="r")

    @contextmanager
    def new_file(self, path: str) -> Iterator[Any]:
        """Open a stream that is uploaded as a whole if the block ends without error."""
        with TemporaryDirectory(prefix="castigate-") as folder:
            # Under its own name, from which fsspec guesses the type that browsers are given.
            file = os.path.join(folder, path.rpartition("/")[2])
            with open(file, "wb") as stream:
                yield stream
            self._publish(file, path)

    def delete_file(self, path: str) -> None:
        """Delete an object; a store that lacks it raises FileNotFoundError or does nothing."""
        with _explained(self.protocol):
            self.system.rm_file(path)

    def delete_folder(self, path: str) -> None:
        """Delete all objects below a path; raise FileNotFoundError if no object lies there."""
        with _explained(self.protocol):
            self.system.rm(path, recursive=True)

    def _publish(self, file: str, path: str) -> None:
        try:
            with _explained(self.protocol):
                self.system.put_file(file, path)
        except FileNotFoundError as error:
            raise StoreError(f"{_first_line(error)}; create the bucket") from None


class _Reader:
    """An open object as a file that Arrow reads; errors of ``read`` become StoreError."""

    def __init__(self, protocol: str, file: Any) -> None:
        self._protocol, self._file = protocol, file

    @property
    def closed(self) -> bool:
        return bool(self._file.closed)

    def read(self, size: int = -1) -> bytes:
        with _explained(self._protocol):
            return bytes(self._file.read(size))

    def seek(self, position: int, whence: int = 0) -> int:
        return int(self._file.seek(position, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def close(self) -> None:
        self._file.close()


def store_at(url: str) -> tuple[ObjectStore, str]:
    """Return the store of a URL, and the path in it.

    Raise CastigateError if a package is missing, the protocol is unknown, or the URL names no
    bucket.
    """
    protocol = url.partition("://")[0]
    try:
        from fsspec import get_filesystem_class
    except ImportError:
        advice = INSTALL_ADVICE.get(protocol, NEEDS_FSSPEC)
        raise CastigateError(f"`{url}` needs the package fsspec; {advice}") from None
    try:
        path = get_filesystem_class(protocol)._strip_protocol(url).rstrip("/")
    except ValueError:
        raise CastigateError(
            f"`{url}` has the unknown protocol `{protocol}`; give a path, or a URL such as "
            "s3://BUCKET/FOLDER"
        ) from None
    except ImportError as error:
        advice = INSTALL_ADVICE.get(protocol, "install it with pip")
        raise CastigateError(f"`{url}` needs a package: {_first_line(error)}; {advice}") from None
    if not path.strip("/"):
        raise CastigateError(f"`{url}` names no bucket; write {protocol}://BUCKET/FOLDER")
    return ObjectStore(protocol), path


@contextmanager
def _explained(protocol: str) -> Iterator[None]:
    """Turn each error in the block into a StoreError, except FileNotFoundError for an object.

    A missing bucket becomes a StoreError too.
    """
    try:
        yield
    except FileNotFoundError as error:
        if NO_BUCKET in str(error.__cause__):
            raise StoreError("the bucket does not exist; create it") from None
        raise
    except PermissionError as error:
        variables = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        where = f" in {variables}" if protocol in S3 else ""
        raise StoreError(f"{_first_line(error)}; check the credentials{where}") from None
    except Exception as error:
        where = "AWS_ENDPOINT_URL and the credentials" if protocol in S3 else "address and access"
        raise StoreError(f"{_first_line(error)}; check {where}") from None


def _first_line(error: BaseException) -> str:
    text = str(error.args[-1]) if isinstance(error, OSError) and error.args else str(error)
    return next(iter(text.splitlines()), type(error).__name__)[:200].rstrip(". ")
