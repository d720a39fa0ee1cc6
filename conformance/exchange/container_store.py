"""Stores a survey of containers beside a run, whose report then shows it."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import ValidationError

from conformance.exchange.container_matrix import Containers, tables
from reports.html.containers import ContainerTable
from reports.run_store.storage import folder_at
from specs.errors import CastigateError

FILE = "containers.json"


def store(run: str, found: Containers) -> None:
    """Write the results into a run's folder, in place of earlier ones."""
    folder_at(run).write(FILE, found.model_dump_json().encode() + b"\n")


def stored_tables(run: str) -> Sequence[ContainerTable]:
    """Return the tables that were stored with a run; empty if none were."""
    content = folder_at(run).read(FILE)
    if content is None:
        return ()
    try:
        return tuple(tables(Containers.model_validate_json(content)))
    except ValidationError as error:
        where = folder_at(run).display_path(FILE)
        problem = error.errors()[0]["msg"]
        raise CastigateError(
            f"{where} cannot be read: {problem}; write it again with castigate containers --run"
        ) from None
