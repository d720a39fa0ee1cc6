"""Writers that are killed: ``python -m tests.reports.dying parts OUT`` or ``… finish OUT STEP``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from reports.run_store import store as stores
from reports.run_store.storage import Folder
from reports.run_store.store import RunStore
from reports.run_store.tables import JudgedCase
from tests.reports.common import HALF, divergence, judgement, record, steps

TASKS = ("one", "two", "three")


def found(task: str) -> Any:
    """What a task finds: half a megabyte of runs, so that a kill may well meet their writing."""
    return [judgement(HALF, divergence(steps(10_000 + len(task)), rule=task))]


def rows(store: RunStore) -> Iterator[JudgedCase]:
    for task in TASKS:
        for each in store.read(task):
            yield "ort", HALF, each


def write_parts(out: str) -> None:
    """Write one part after another until somebody kills this."""
    store = stores.resume(out, record())
    for number in count():
        store.write(str(number), found(str(number)))
        if number == 0:
            print("begun", flush=True)


def finish(out: str, step: int) -> None:
    """Finish a run, and die before or after the change to the folder of that number."""
    left = [step]

    def dying(act: Callable[..., Any]) -> Callable[..., Any]:
        def acting(*arguments: Any) -> Any:
            for moment in range(2):
                if left[0] == 0:
                    os._exit(9)
                left[0] -= 1
                if moment == 0:
                    result = act(*arguments)
            return result

        return acting

    store = stores.resume(out, record())
    for name in ("_rename", "remove_folder"):
        setattr(Folder, name, dying(getattr(Folder, name)))
    store.finish(rows(store), lambda: 1)


if __name__ == "__main__":
    kind, out, *more = sys.argv[1:]
    if kind == "parts":
        write_parts(out)
    else:
        finish(out, int(more[0]))
