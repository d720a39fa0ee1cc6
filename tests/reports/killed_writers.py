"""Programs that write a run and are killed.

``python -m tests.reports.killed_writers parts OUT`` writes parts until it is killed;
``python -m tests.reports.killed_writers finish OUT STEP`` finishes a run and dies at a step.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from reports.run_store import store as stores
from reports.run_store.object_store import ObjectStore
from reports.run_store.storage import LocalFiles
from reports.run_store.store import RunStore
from reports.run_store.tables import JudgedCase
from tests.reports.common import HALF, divergence, judgement, record, steps

TASKS = ("one", "two", "three")


def judgements_of(task: str) -> Any:
    """Return half a megabyte of runs, so that a kill often hits their writing."""
    return [judgement(HALF, divergence(steps(10_000 + len(task)), rule=task))]


def all_rows(store: RunStore) -> Iterator[JudgedCase]:
    for task in TASKS:
        for each in store.read(task):
            yield "ort", HALF, each


def write_parts(out: str) -> None:
    """Write one part after another until this process is killed."""
    store = stores.resume(out, record())
    for number in count():
        store.write(str(number), judgements_of(str(number)))
        if number == 0:
            print("begun", flush=True)


def finish(out: str, step: int) -> None:
    """Finish a run, and die before or after one of its changes to the folder."""
    steps_left = [step]

    def killed_at_step(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            for moment in range(2):
                if steps_left[0] == 0:
                    os._exit(9)
                steps_left[0] -= 1
                if moment == 0:
                    result = method(*arguments)
            return result

        return call

    store = stores.resume(out, record())
    renames = [(os, "replace"), (ObjectStore, "_publish")]
    for owner, name in (*renames, (LocalFiles, "delete_folder"), (ObjectStore, "delete_folder")):
        setattr(owner, name, killed_at_step(getattr(owner, name)))
    store.finish(all_rows(store), lambda: 1)


if __name__ == "__main__":
    kind, out, *more = sys.argv[1:]
    if kind == "parts":
        write_parts(out)
    else:
        finish(out, int(more[0]))
