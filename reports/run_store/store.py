"""The folder of a run: what each task found while it runs, and the tables when it is complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from reports.judgement import Judgement
from reports.run_store.record import (
    Environment,
    RunRecord,
    current_time,
    parse_record,
    record_differences,
    serialize_record,
)
from reports.run_store.storage import Folder, folder_at, is_unfinished
from reports.run_store.tables import JudgedCase, write_tables
from reports.run_store.task_file import DamagedPartError, decode_task, encode_task, read_task_name
from specs.errors import CastigateError

RECORD, PARTS, LOG, CAUSES = "run.json", "parts", "log.txt", "causes.json"


@dataclass(frozen=True)
class RunStore:
    """The folder and the record of a run. Only the process that coordinates the run writes there.

    The file of a finished task is called a part. Methods raise CastigateError if the folder cannot
    be read or written.
    """

    folder: Folder
    record: RunRecord

    def write(self, task: str, judgements: list[Judgement]) -> None:
        """Store the judgements of a finished task as its part."""
        self.write_part(task, encode_task(task, judgements))

    def write_part(self, task: str, part: bytes) -> None:
        """Store the bytes of a finished task's part, which appears whole or not at all."""
        self.folder.write(_part_path(task), part)

    def read(self, task: str) -> list[Judgement]:
        """Read the judgements of a task; raise CastigateError if its part is missing or damaged."""
        path = _part_path(task)
        data = self.folder.read(path)
        try:
            if data is None:
                raise DamagedPartError("it is missing")
            name, judgements = decode_task(data)
            if name != task:
                raise DamagedPartError("it is another task's")
        except DamagedPartError as error:
            advice = "run it again into another --out" if self.record.complete else "use --resume"
            message = f"{self.folder.display_path(path)}: {error}; {advice}"
            raise CastigateError(message) from None
        return judgements

    def add_to_log(self, output: bytes) -> None:
        """Append to the log what the programs of backends wrote to stderr."""
        self.folder.write(LOG, (self.folder.read(LOG) or b"") + output)

    def finished(self, warn: Callable[[str], None] | None = None) -> set[str]:
        """Return the names of the tasks whose parts are whole.

        ``warn`` is called with a message about each damaged part.
        """
        names = set()
        for base in self._part_names():
            path = f"{PARTS}/{base}"
            try:
                name = read_task_name(self.folder.read(path) or b"")
                if path != _part_path(name):
                    raise DamagedPartError("it is another task's")
                names.add(name)
            except DamagedPartError as error:
                if warn is not None:
                    warn(f"{self.folder.display_path(path)}: {error}; its task is done again")
        return names

    def _part_names(self) -> list[str]:
        return [base for base in self.folder.names(PARTS) if not is_unfinished(base)]

    def missing_parts(self) -> list[str]:
        """Return the displayed paths of those parts of a complete shard that are missing."""
        there = set(self._part_names())
        missing = [base for base in self.record.parts if base not in there]
        return [self.folder.display_path(f"{PARTS}/{base}") for base in missing]

    def finish(
        self,
        rows: Iterable[JudgedCase],
        exit_code: Callable[[], int],
        find_causes: Callable[[RunStore], bytes] | None = None,
    ) -> RunStore:
        """Write the tables, mark the run complete, and remove its parts; a shard keeps only parts.

        Return the store with the new record. ``find_causes`` returns the content of
        ``causes.json``. It and ``exit_code`` are called after all ``rows`` are written; of a shard,
        ``rows`` are not read and ``find_causes`` is not called. If this is interrupted, the run can
        be resumed: the parts stay until the mark is written, and are not needed afterwards.
        """
        if self.record.shard is None:
            write_tables(self.folder, rows)
            if find_causes is not None:
                self.folder.write(CAUSES, find_causes(self))
        changes = {"complete": True, "finished": current_time(), "exit_code": exit_code()}
        if self.record.shard is not None:
            changes["parts"] = tuple(self._part_names())
        done = self._with_record(self.record.model_copy(update=changes))
        done.tidy()
        return done

    def with_environments(self, machines: Iterable[Environment]) -> RunStore:
        """Return the store with those machines added to its record that the record lacks.

        The record in the folder is changed too.
        """
        known = self.record.environments
        more = tuple(each for each in machines if each not in known)
        if not more:
            return self
        return self._with_record(self.record.model_copy(update={"environments": known + more}))

    def tidy(self) -> None:
        """Remove what killed writers left, and the parts of a complete run that has tables."""
        self.folder.remove_unfinished()
        if self.record.complete and self.record.shard is None:
            self.folder.remove_folder(PARTS)
        else:
            self.folder.remove_unfinished(PARTS)

    def _with_record(self, record: RunRecord) -> RunStore:
        self.folder.write(RECORD, serialize_record(record))
        return replace(self, record=record)


def create(out: str, record: RunRecord) -> RunStore:
    """Create a run in a missing folder or one without finished files; else raise CastigateError."""
    folder = folder_at(out)
    names = [name for name in folder.names() if not is_unfinished(name)]
    if RECORD in names:
        if read_record(folder).complete:
            raise CastigateError(f"{folder.display_name} holds a complete run; give another --out")
        raise CastigateError(
            f"{folder.display_name} holds an unfinished run; go on with it by --resume, "
            "or give another --out"
        )
    if names:
        raise CastigateError(
            f"{folder.display_name} holds files and is no run (`{names[0]}`); "
            "give an empty folder or a new one as --out"
        )
    folder.write(RECORD, serialize_record(record), advice="give another --out")
    folder.remove_unfinished()
    return RunStore(folder, record)


def resume(out: str, record: RunRecord) -> RunStore:
    """Open the run in a folder to continue it.

    Raise CastigateError if it was begun with other options or versions than ``record`` has. Files
    that killed writers left are removed. A new machine is added to the run's record, unless that
    says that the run is already complete.
    """
    folder = folder_at(out)
    begun = read_record(folder)
    changed = "; ".join(f"{old}, now {new}" for old, new in record_differences(begun, record))
    if changed:
        raise CastigateError(
            f"{folder.display_name} was begun with {changed}; "
            "resume it as it was begun, or give another --out"
        )
    store = RunStore(folder, begun)
    store.tidy()
    return store if begun.complete else store.with_environments(record.environments)


def read_record(folder: Folder, *, allows_edited: bool = False) -> RunRecord:
    """Read ``run.json`` in a folder.

    Raise CastigateError if it is missing, and where ``parse_record`` does.
    """
    data = folder.read(RECORD)
    if data is None:
        raise CastigateError(
            f"{folder.display_name} is no run: it holds no {RECORD}; give a run's folder"
        )
    return parse_record(data, folder.display_path(RECORD), allows_edited=allows_edited)


def _part_path(task: str) -> str:
    """Return the path of a task's part.

    It has a digest in place of the task's name, which may be long and hold any character.
    """
    return f"{PARTS}/{sha256(task.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.part"
