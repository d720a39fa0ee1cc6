"""A process of Node.js that is asked over its pipes."""

from __future__ import annotations

import shutil
import subprocess
import weakref
from threading import Lock

from oracles.protocol import NotInstalled

ADVICE = "node is missing: install Node.js (apt-get install nodejs) and have `node` on the PATH"

PIPES = """\
const { readSync, writeSync } = require("node:fs");
function fill(bytes) {
  for (let at = 0; at < bytes.length; ) {
    const got = readSync(0, bytes, at, bytes.length - at);
    if (!got) process.exit(0);
    at += got;
  }
  return bytes;
}
function send(bytes) {
  for (let at = 0; at < bytes.length; ) at += writeSync(1, bytes, at, bytes.length - at);
}
"""
"""JavaScript of each process: ``fill`` reads bytes, or exits at the pipe's end; ``send`` writes."""


def node_on_path() -> str:
    """Return the path of the program node; raise NotInstalled if there is none on the PATH."""
    node = shutil.which("node")
    if node is None:
        raise NotInstalled(ADVICE)
    return node


def node_says(expression: str) -> str:
    """Return the value of a JavaScript expression, printed by a new process of node."""
    asked = [node_on_path(), "-p", expression]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


class NodeProcess:
    """A process of Node.js that ends with this object; whoever asks it holds ``lock``."""

    def __init__(self, arguments: list[str]) -> None:
        self.lock = Lock()
        self._process = subprocess.Popen(
            [node_on_path(), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._replies = self._process.stdin, self._process.stdout
        weakref.finalize(self, _end, self._process)

    def send(self, left: memoryview) -> None:
        """Write all of the memory to the process; raise RuntimeError if it has ended."""
        while left:
            try:
                left = left[self._requests.write(left) :]
            except BrokenPipeError:
                raise self._ended() from None

    def receive(self, left: memoryview) -> None:
        """Fill the memory with what the process writes; raise RuntimeError if it has ended."""
        while left:
            if not (count := self._replies.readinto(left)):  # type: ignore[attr-defined]
                raise self._ended()
            left = left[count:]

    def received(self, size: int) -> bytearray:
        """Return the next ``size`` bytes that the process writes, as ``receive`` does."""
        content = bytearray(size)
        self.receive(memoryview(content))
        return content

    def _ended(self) -> RuntimeError:
        return RuntimeError(f"node ended: exit status {self._process.wait()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    with process:
        pass  # closes the pipes and waits
