"""Try mutants: in a copy of the checkout, change one module and run the tests that belong to it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from tempfile import TemporaryDirectory, mkdtemp
from time import perf_counter
from typing import Literal

import pytest

from lab.code_mutation.mutants import Mutant, mutate
from lab.code_mutation.related_tests import related_files

Outcome = Literal["killed", "survived", "timed out"]
Tests = tuple[str, ...]

PYTEST = ("-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", "not nightly")
LIMIT = 600.0
"""Seconds for the tests of a module: several times what they take on a busy machine."""
CACHING = ("specs/model/cache.py", "specs/model/yaml_file.py", "specs/model/yaml_parser.py")
"""Modules that write or read what later processes read."""


@dataclass(frozen=True)
class Copy:
    """A copy of the checkout in a temporary folder, and the caches of what runs in it."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "castigate"

    def run_tests(self, tests: Tests, seconds: float, *, fresh_caches: bool = False) -> int | None:
        """Run test files and return pytest's exit code, or None if the time is up."""
        caches = Path(mkdtemp(dir=self.folder)) if fresh_caches else self.folder
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "NUMBA_CACHE_DIR": str(caches / "numba"),
            "XDG_CACHE_HOME": str(caches / "user"),
        }
        process = subprocess.Popen(
            [sys.executable, *PYTEST, *tests],
            cwd=self.root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            # A test that hangs may have started processes of its own.
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def try_mutant(self, mutant: Mutant, seconds: float) -> Outcome:
        """Change the mutant's module, run its tests, and change it back; return the outcome."""
        path = self.root / mutant.file
        source = path.read_text(encoding="utf-8")
        path.write_text(mutate(source, mutant.operator, mutant.occurrence), encoding="utf-8")
        # numba reuses a cached function even if a function that it calls has changed.
        fresh = mutant.file.endswith("_numba.py") or mutant.file in CACHING
        try:
            code = self.run_tests(related_files(mutant.file), seconds, fresh_caches=fresh)
        finally:
            path.write_text(source, encoding="utf-8")
        match code:
            case None:
                return "timed out"
            case pytest.ExitCode.OK:
                return "survived"
            case pytest.ExitCode.NO_TESTS_COLLECTED:
                raise ValueError(f"`{' '.join(related_files(mutant.file))}` hold no test")
        # A test fails, or pytest does not even begin as the change breaks an import.
        return "killed"


@contextmanager
def copies(root: Path, number: int) -> Iterator[list[Copy]]:
    """Yield temporary copies of the files of a checkout that git does not ignore."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
        text=True,
    )
    files = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    with TemporaryDirectory() as folder:
        made = [Copy(Path(folder) / str(index)) for index in range(number)]
        for copy in made:
            for name in files:
                target = copy.root / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, target)
            # By time and size, Python would take the bytecode of one mutant for another's.
            compiling = ("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", ".")
            subprocess.run([sys.executable, *compiling], cwd=copy.root, check=True)
        yield made


class Trials:
    """Runs tests side by side, each in a copy of its own."""

    def __init__(self, made: list[Copy], pool: ThreadPoolExecutor) -> None:
        self._pool = pool
        self._free: SimpleQueue[Copy] = SimpleQueue()
        for copy in made:
            self._free.put(copy)

    def try_mutants(
        self, mutants: Sequence[Mutant], report: Callable[[Mutant, Outcome, float], None]
    ) -> None:
        """Try mutants, and report each as it is done."""

        def attempt(mutant: Mutant) -> None:
            begun = perf_counter()
            with self._copy() as copy:
                outcome = copy.try_mutant(mutant, LIMIT)
            report(mutant, outcome, perf_counter() - begun)

        list(self._pool.map(attempt, mutants))

    def failing_lists(self, lists: Sequence[Tests]) -> list[Tests]:
        """The lists of test files that fail, or take too long, without any change."""

        def fails(tests: Tests) -> bool:
            with self._copy() as copy:
                return copy.run_tests(tests, LIMIT) != 0

        failing = self._pool.map(fails, lists)
        return [tests for tests, is_failing in zip(lists, failing, strict=True) if is_failing]

    @contextmanager
    def _copy(self) -> Iterator[Copy]:
        copy = self._free.get()
        try:
            yield copy
        finally:
            self._free.put(copy)


@contextmanager
def trials(root: Path, jobs: int) -> Iterator[Trials]:
    """Yield what runs tests in copies of a checkout, ``jobs`` of them side by side."""
    with copies(root, jobs) as made, ThreadPoolExecutor(jobs) as pool:
        yield Trials(made, pool)
