"""An S3-compatible server on loopback, for tests of object stores."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from unittest.mock import patch
from urllib.request import Request, urlopen

import s3fs
from moto.server import ThreadedMotoServer

BUCKET = "bucket"
KEYS = {"AWS_ACCESS_KEY_ID": "somebody", "AWS_SECRET_ACCESS_KEY": "secret"}
CHANGES = ("PUT", "POST", "DELETE")
OTHER = {
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "NO_PROXY": "127.0.0.1",
    "no_proxy": "127.0.0.1",
}


class ChangeCounter(logging.Handler):
    """Counts the requests in a server's log that write or delete objects."""

    count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count one request."""
        self.count += any(f'"{method} ' in record.getMessage() for method in CHANGES)


@dataclass(frozen=True)
class Server:
    """A running server: its address, and the counter of its changes."""

    address: str
    changes: ChangeCounter


@contextmanager
def s3_server() -> Iterator[Server]:
    """Serve an empty bucket, with environment variables that point to it."""
    log, changes = logging.getLogger("werkzeug"), ChangeCounter()
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    try:
        with (
            patch.object(log, "handlers", [changes]),
            patch.object(log, "propagate", False),
            patch.dict(os.environ, {"AWS_ENDPOINT_URL": address, **KEYS, **OTHER}),
        ):
            s3fs.S3FileSystem.clear_instance_cache()
            _post(f"{address}/moto-api/reset", b"")
            s3fs.S3FileSystem(use_listings_cache=False).mkdir(BUCKET)
            yield Server(address, changes)
    finally:
        s3fs.S3FileSystem.clear_instance_cache()
        server.stop()


@contextmanager
def refused_keys(address: str) -> Iterator[None]:
    """Make the server check keys, all of which it refuses."""
    _post(f"{address}/moto-api/reset-auth", b"0")
    try:
        yield
    finally:
        _post(f"{address}/moto-api/reset-auth", b"inf")


def _post(url: str, data: bytes) -> None:
    headers = {"Content-Type": "text/plain"}
    urlopen(Request(url, data, headers, method="POST")).close()
