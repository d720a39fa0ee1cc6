"""Merges the shards of a run, after checking that all of them are there, once each."""

from __future__ import annotations

from collections.abc import Sequence

from reports.run_store.open_run import open_shard
from reports.run_store.record import RunRecord, Shard, record_differences, shareable_command
from reports.run_store.store import RunStore, create
from specs.errors import CastigateError


def merge_shards(shards: Sequence[str], out: str, argv: Sequence[str]) -> RunStore:
    """Create a store at ``out`` with the part files of all shards of a run, and return it.

    The store has no tables yet. ``argv`` is the command line that its record keeps. Raise
    CastigateError where ``open_shard`` does, if a part is damaged, if shards are missing, doubled
    or of different runs, or if ``out`` is not empty.
    """
    stores = [open_shard(shard) for shard in shards]
    record = _merged_record(stores, argv)
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


def _merged_record(shards: Sequence[RunStore], argv: Sequence[str]) -> RunRecord:
    """Return the record, not yet complete, of the run that these shards make up."""
    first, folder_by_index = shards[0], dict[int, str]()
    count = _shard_of(first).count
    for store in shards:
        _check_same_run(first, store)
        shard, folder = _shard_of(store), store.folder.display_name
        if shard.index in folder_by_index:
            raise CastigateError(
                f"{folder_by_index[shard.index]} and {folder} are both shard {shard}; "
                "give each shard once"
            )
        folder_by_index[shard.index] = folder
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
        "command_line": shareable_command(argv),
        "started": min(record.started for record in records),
        "finished": None,
        "complete": False,
        "exit_code": None,
        "parts": (),
    }
    return first.record.model_copy(update=changes)


def _shard_of(store: RunStore) -> Shard:
    assert store.record.shard is not None
    return store.record.shard


def _check_same_run(first: RunStore, store: RunStore) -> None:
    one, other = _shard_of(first), _shard_of(store)
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
