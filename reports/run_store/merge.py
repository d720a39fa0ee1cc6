"""Merges the shards of a run, after checking that all of them are there, once each."""

from __future__ import annotations

from collections.abc import Sequence

from reports.run_store.open_run import open_shard
from reports.run_store.record import RunRecord, Shard, record_differences, shareable_command
from reports.run_store.store import RunStore, create
from specs import VERSION
from specs.errors import CastigateError


def merge_shards(shards: Sequence[str], out: str, argv: Sequence[str]) -> RunStore:
    """Create a store at ``out`` with the part files of all shards of a run, and return it.

    The store has no tables yet. ``argv`` is the command line that its record keeps. Raise
    CastigateError if a part is damaged, if ``merge_record`` refuses the shards, or if ``out`` is
    not empty.
    """
    stores = [open_shard(shard) for shard in shards]
    record = merge_record(stores, argv)
    for shard in stores:
        damaged: list[str] = []
        shard.finished(damaged.append)
        for each in damaged:
            raise CastigateError(
                f"{each.partition('; ')[0]}; run the shard again into another --out"
            )
    store = create(out, record)
    for shard in stores:
        for name in shard.finished():
            store.write(name, shard.read(name))
    return store


def merge_record(shards: Sequence[RunStore], argv: Sequence[str] = ()) -> RunRecord:
    """Return the record, not yet complete, of the run that these shards make up.

    ``argv`` is the command that merges; without it the first shard's command line stays. Raise
    CastigateError if a store is no complete shard of this version with all its parts, or if shards
    are missing, doubled or of different runs.
    """
    if not shards:
        raise CastigateError("there is nothing to merge; give the folders of all shards of a run")
    first, folder_by_index = shards[0], dict[int, str]()
    for store in shards:
        shard, folder = _checked_shard(store), store.folder.display_name
        _check_same_run(first, store)
        if shard.index in folder_by_index:
            raise CastigateError(
                f"{folder_by_index[shard.index]} and {folder} are both shard {shard}; "
                "give each shard once"
            )
        folder_by_index[shard.index] = folder
    count = _checked_shard(first).count
    missing = [f"{index}/{count}" for index in range(1, count + 1) if index not in folder_by_index]
    if missing:
        raise CastigateError(
            f"shard {', '.join(missing)} of the run is missing; give the folders of all shards"
        )
    records = [store.record for store in shards]
    # Without duplicates; an environment holds a dict, so that it cannot be hashed.
    environments = [each for record in records for each in record.environments]
    changes = {
        "shard": None,
        "environments": tuple(
            each for index, each in enumerate(environments) if each not in environments[:index]
        ),
        "command_line": shareable_command(argv) if argv else first.record.command_line,
        "started": min(record.started for record in records),
        "finished": None,
        "complete": False,
        "exit_code": None,
        "parts": (),
    }
    return first.record.model_copy(update=changes)


def _checked_shard(store: RunStore) -> Shard:
    """Return which shard a store holds; raise CastigateError if it cannot be merged.

    It can if it is a complete shard with all its parts, written by this version of Castigate.
    """
    folder, record = store.folder.display_name, store.record
    if record.shard is None:
        raise CastigateError(f"{folder} is a whole run; only shards can be merged")
    if not record.complete:
        raise CastigateError(
            f"{folder} is an unfinished shard; go on with it by `castigate run … --resume`"
        )
    if missing := store.missing_parts():
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise CastigateError(
            f"{missing[0]}{more} is missing; copy the whole shard again, "
            "or run it again into another --out"
        )
    if record.suite != VERSION:
        raise CastigateError(
            f"{folder} was made by castigate {record.suite}, this is {VERSION}; "
            "merge with the version that made it"
        )
    return record.shard


def _check_same_run(first: RunStore, store: RunStore) -> None:
    one, other = _checked_shard(first), _checked_shard(store)
    differences = record_differences(
        *(each.record.model_copy(update={"shard": None}) for each in (first, store))
    )
    if one.count != other.count:
        differences.append((f"--shard {one}", f"--shard {other}"))
    if differences:
        listed = "; ".join(f"{there} there, {here} here" for there, here in differences)
        raise CastigateError(
            f"{store.folder.display_name} is no shard of the run of "
            f"{first.folder.display_name}: {listed}"
        )
