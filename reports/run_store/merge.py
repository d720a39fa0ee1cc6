"""Shards become one run: all of them, each once, and of the same run."""

from __future__ import annotations

from collections.abc import Sequence

from reports.run_store.record import RunRecord, Shard, command_line, differences
from reports.run_store.store import RunStore
from specs.errors import CastigateError
from specs.release import VERSION


def merge_record(shards: Sequence[RunStore], argv: Sequence[str] = ()) -> RunRecord:
    """The record, not yet complete, of the run whose shards these are.

    ``argv`` is the command that merges; without it the first shard's command line stays.
    """
    if not shards:
        raise CastigateError("there is nothing to merge; give the folders of all shards of a run")
    first, places = shards[0], dict[int, str]()
    for store in shards:
        shard, given = _shard(store), store.place.given
        _check_same(first, store)
        if shard.index in places:
            raise CastigateError(
                f"{places[shard.index]} and {given} are both shard {shard}; give each shard once"
            )
        places[shard.index] = given
    count = _shard(first).count
    missing = [f"{index}/{count}" for index in range(1, count + 1) if index not in places]
    if missing:
        raise CastigateError(
            f"shard {', '.join(missing)} of the run is missing; give the folders of all shards"
        )
    records = [store.record for store in shards]
    machines = [machine for record in records for machine in record.environments]
    changes = {
        "shard": None,
        "environments": tuple(
            machine for place, machine in enumerate(machines) if machine not in machines[:place]
        ),
        "command_line": command_line(argv) if argv else first.record.command_line,
        "started": min(record.started for record in records),
        "finished": None,
        "complete": False,
        "exit_code": None,
    }
    return first.record.model_copy(update=changes)


def _shard(store: RunStore) -> Shard:
    given, record = store.place.given, store.record
    if record.shard is None:
        raise CastigateError(f"{given} is a whole run; only shards can be merged")
    if not record.complete:
        raise CastigateError(
            f"{given} is an unfinished shard; go on with it by `castigate run … --resume`"
        )
    if record.suite != VERSION:
        raise CastigateError(
            f"{given} was made by castigate {record.suite}, this is {VERSION}; "
            "merge with the version that made it"
        )
    return record.shard


def _check_same(first: RunStore, store: RunStore) -> None:
    one, other = _shard(first), _shard(store)
    unlike = differences(
        *(each.record.model_copy(update={"shard": None}) for each in (first, store))
    )
    if one.count != other.count:
        unlike.append((f"--shard {one}", f"--shard {other}"))
    if unlike:
        told = "; ".join(f"{there} there, {here} here" for there, here in unlike)
        raise CastigateError(
            f"{store.place.given} is no shard of the run of {first.place.given}: {told}"
        )
