"""The folder in which a run keeps what it found, while it goes on and when it is done."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from hashlib import sha256

from reports.diff.judgement import Judgement
from reports.run_store.record import RunRecord, differences, now, parsed, written
from reports.run_store.storage import Place, is_unfinished, place_of
from reports.run_store.tables import Row, write_tables
from reports.run_store.task_file import DamagedPartError, name_of, packed, unpacked
from specs.errors import CastigateError

RECORD, PARTS, LOG = "run.json", "parts", "log.txt"


@dataclass(frozen=True)
class RunStore:
    """A run's folder and its record; it can be handed to other processes, which write parts."""

    place: Place
    record: RunRecord

    def write(self, name: str, judgements: list[Judgement]) -> None:
        """Keep what a finished task found, in one step."""
        self.place.write(_file(name), packed(name, judgements))

    def read(self, name: str) -> list[Judgement]:
        """What a finished task found."""
        file = _file(name)
        data = self.place.read(file)
        try:
            if data is None:
                raise DamagedPartError("it is missing")
            found, judgements = unpacked(data)
            if found != name:
                raise DamagedPartError("it is another task's")
        except DamagedPartError as error:
            advice = "run it again into another --out" if self.record.complete else "use --resume"
            raise CastigateError(f"{self.place.named(file)}: {error}; {advice}") from None
        return judgements

    def add_to_log(self, said: bytes) -> None:
        """Keep what programs have said beside their answers."""
        self.place.write(LOG, (self.place.read(LOG) or b"") + said)

    def finished(self, warn: Callable[[str], None] | None = None) -> set[str]:
        """The names of the tasks whose parts are whole; one line of warning about any other."""
        names = set()
        for base in self.place.names(PARTS):
            file = f"{PARTS}/{base}"
            if is_unfinished(base):
                continue
            try:
                name = name_of(self.place.read(file) or b"")
                if file != _file(name):
                    raise DamagedPartError("it is another task's")
                names.add(name)
            except DamagedPartError as error:
                if warn is not None:
                    warn(f"{self.place.named(file)}: {error}; its task is done again")
        return names

    def finish(self, rows: Iterable[Row], exit_code: Callable[[], int]) -> RunStore:
        """Write the tables, mark the run complete, remove the parts; a shard only keeps its parts.

        The exit code is asked for when all rows are written. Each step leaves a folder that can be
        resumed: until the mark the parts are there, and after it they are not needed.
        """
        if self.record.shard is None:
            write_tables(self.place, rows)
        changes = {"complete": True, "finished": now(), "exit_code": exit_code()}
        done = self._marked(self.record.model_copy(update=changes))
        done.tidy()
        return done

    def tidy(self) -> None:
        """Remove what killed writers left, and the parts of a complete run that has tables."""
        self.place.clean()
        if self.record.complete and self.record.shard is None:
            self.place.remove_folder(PARTS)
        else:
            self.place.clean(PARTS)

    def _marked(self, record: RunRecord) -> RunStore:
        self.place.write(RECORD, written(record))
        return replace(self, record=record)


def create(out: str, record: RunRecord) -> RunStore:
    """A new run in a folder that is empty or not there yet."""
    place = place_of(out)
    names = [name for name in place.names() if not is_unfinished(name)]
    if RECORD in names:
        if read_record(place).complete:
            raise CastigateError(f"{place.given} holds a complete run; give another --out")
        raise CastigateError(
            f"{place.given} holds an unfinished run; go on with it by --resume, "
            "or give another --out"
        )
    if names:
        raise CastigateError(
            f"{place.given} holds files and is no run (`{names[0]}`); "
            "give an empty folder or a new one as --out"
        )
    place.write(RECORD, written(record), advice="give another --out")
    place.clean()
    return RunStore(place, record)


def resume(out: str, record: RunRecord) -> RunStore:
    """The run in a folder, to go on with it, if it is the same in all that matters for the answers.

    What killed writers left is removed. A run that is complete already says so in its record.
    """
    place = place_of(out)
    begun = read_record(place)
    changed = "; ".join(f"{old}, now {new}" for old, new in differences(begun, record))
    if changed:
        raise CastigateError(
            f"{place.given} was begun with {changed}; "
            "resume it as it was begun, or give another --out"
        )
    store = RunStore(place, begun)
    store.tidy()
    machines = [*begun.environments]
    machines += [each for each in record.environments if each not in machines]
    if begun.complete or len(machines) == len(begun.environments):
        return store
    return store._marked(begun.model_copy(update={"environments": tuple(machines)}))


def read_record(place: Place) -> RunRecord:
    """What ``run.json`` says, or an error that says what is wrong with it."""
    data = place.read(RECORD)
    if data is None:
        raise CastigateError(f"{place.given} is no run: it holds no {RECORD}; give a run's folder")
    return parsed(data, place.named(RECORD))


def _file(name: str) -> str:
    """The file of a task: its name may be longer than a file's can be, and hold any character."""
    return f"{PARTS}/{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}.part"
