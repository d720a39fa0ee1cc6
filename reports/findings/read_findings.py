"""Reads the cells and findings of a complete run; findings are searched for once, then stored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from itertools import chain
from sys import intern
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from oracles.backend.resource_limits import return_freed_memory
from reports.findings.cells import (
    Cell,
    CellKey,
    Divergence,
    FailingInputs,
    KnownColumns,
    ShownRun,
    failing_inputs,
)
from reports.findings.finding import ExplainedCase, Finding
from reports.findings.intervals import segments
from reports.grading.failure_runs import MOST_RUNS
from reports.judgement import FAILING, VERDICTS
from reports.problems import Problem, WrongEnd, decode_problem
from reports.run_store.open_run import (
    REPAIR_ADVICE,
    RunAnswers,
    read_batches,
    read_digests,
    row_groups,
)
from reports.run_store.store import CAUSES, RunStore
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.json_source import JsonError, load_json

FORMAT = 1
"""Changes when the fields of a finding change; findings of another format are not read."""
STORED = tuple(each.name for each in fields(ExplainedCase) if each.name != "cell")
MANY_FAILURES = 1000
"""From this many failures on, the backends' causes are searched by several processes."""
UNREADABLE = (JsonError, ValueError, LookupError, TypeError, AttributeError)
"""The errors that reading raises if a file of findings holds other JSON."""


def found_again(store: RunStore, backend: str | None = None) -> dict[str, tuple[Finding, ...]]:
    """Search the failures of a run for findings, by backend, even if findings are stored.

    With ``backend``, only its failures are searched. Raise CastigateError if a table of the run is
    damaged.
    """
    failing = [*_failing_cells(store, backend, has_inputs=True)]
    if not failing:
        return {}
    from reports.findings.find import find_findings  # The search is large, and often not needed.

    return find_findings(failing, RunAnswers(store).values)


def causes_of(store: RunStore) -> bytes:
    """Search a run's failures for findings, and return them as the bytes of ``causes.json``.

    In a large run, those of each backend are searched by a process of its own.
    """
    return_freed_memory()  # What the tables took, while they were written.
    failing: Counter[str] = Counter()
    for table in ("cases.parquet", "pairs.parquet"):
        for batch in read_batches(store, table, ("backend", "verdict")):
            failing += Counter(
                batch.filter(_is_wanted(batch, FAILING, None))["backend"].to_pylist()
            )
    names = [each.name for each in store.record.backends if each.name in failing]
    if len(names) > 1 and failing.total() >= MANY_FAILURES and not store.folder.is_in_memory:
        from reports.other_processes import done_meanwhile  # Most runs are small.

        with done_meanwhile([partial(_causes, store, name) for name in names]) as results:
            found = results()
        if found is not None:
            return _joined(dict(zip(names, found, strict=True)))
    return _joined({backend: _encoded(each) for backend, each in found_again(store).items()})


def _causes(store: RunStore, backend: str) -> str:
    return _encoded(found_again(store, backend)[backend])


def read_findings(
    store: RunStore, cells: Callable[[], Iterable[Cell]] | None = None
) -> dict[str, tuple[Finding, ...]]:
    """Return the findings of each failing backend: those stored, or else those found by a search.

    Stored ones of another ``FORMAT`` are not used. ``cells`` returns cells and checks of the run,
    all failing ones among them, if they are known already. Raise CastigateError if the stored
    findings or a table are damaged.
    """
    data = store.folder.read(CAUSES)
    if data is None:
        return found_again(store)
    failing = _failing_cells(store) if cells is None else cells()
    try:
        content = load_json(data.decode("utf-8", "surrogatepass"))
        if content["format"] == FORMAT:
            by_key = {(each.backend, each.name): each for each in failing}
            return _decode(content["findings"], by_key)
    except UNREADABLE:
        path = store.folder.display_path(CAUSES)
        raise CastigateError(f"{path} is damaged; {REPAIR_ADVICE}") from None
    return found_again(store)


def stored_ids(store: RunStore) -> frozenset[str] | None:
    """Return the ids of a run's stored findings; None if none can be read."""
    data = store.folder.read(CAUSES)
    try:
        content = load_json((data or b"").decode("utf-8", "surrogatepass"))
        if content["format"] != FORMAT:
            return None
        found = content["findings"].items()
        return frozenset(f"{backend}/{each['name']}" for backend, every in found for each in every)
    except UNREADABLE:
        return None


def _joined(encoded: Mapping[str, str]) -> bytes:
    """Return the bytes of ``causes.json`` with the encoded findings of each backend."""
    parts = (f"{json.dumps(name, ensure_ascii=False)}: {each}" for name, each in encoded.items())
    text = f'{{"format": {FORMAT}, "findings": {{{", ".join(parts)}}}}}\n'
    return text.encode("utf-8", "surrogatepass")


def _encoded(found: Iterable[Finding]) -> str:
    """Encode the findings of a backend as JSON; their cells are stored by name only."""
    content = [
        {
            "name": each.name,
            "kind": each.kind,
            "says": each.says,
            "explained": [
                [case.cell.name, *(getattr(case, name) for name in STORED)]
                for case in each.explained
            ],
        }
        for each in found
    ]
    return json.dumps(content, ensure_ascii=False)


def _decode(
    content: Mapping[str, Any], cells: Mapping[CellKey, Cell]
) -> dict[str, tuple[Finding, ...]]:
    return {
        backend: tuple(
            Finding(
                each["name"],
                backend,
                each["kind"],
                each["says"],
                tuple(_decode_explained(backend, case, cells) for case in each["explained"]),
            )
            for each in found
        )
        for backend, found in content.items()
    }


def _decode_explained(
    backend: str, stored: list[Any], cells: Mapping[CellKey, Cell]
) -> ExplainedCase:
    name, *values = stored
    named = dict(zip(STORED, values, strict=True))
    named |= {"allowed": tuple(named["allowed"]), "segments": tuple(named["segments"])}
    return ExplainedCase(cells[backend, name], **named)


def _failing_cells(
    store: RunStore, backend: str | None = None, *, has_inputs: bool = False
) -> Iterable[Cell]:
    cells = read_cells(store, FAILING, backend, has_inputs=has_inputs)
    return chain(cells, read_checks(store, FAILING, backend))


def _is_wanted(batch: Any, verdicts: Collection[str], backend: str | None) -> Any:
    """Mark the rows of a batch with one of these verdicts, of one backend unless it is None."""
    wanted = pc.is_in(batch["verdict"], pa.array(verdicts, pa.string()))
    return wanted if backend is None else pc.and_(wanted, pc.equal(batch["backend"], backend))


SHOWN_RUNS = 6
"""How many runs of inputs a page lists per rule, before the very last one."""
OWNER = ("backend", "case", "rule", "level")
"""The columns of ``divergences.parquet`` that name the broken rule to which a row belongs."""


def read_cells(
    store: RunStore,
    verdicts: Collection[str] = VERDICTS,
    backend: str | None = None,
    *,
    has_inputs: bool = True,
) -> Iterator[Cell]:
    """Yield the cells whose verdict is in ``verdicts``, in the order of ``cases.parquet``.

    With ``backend``, those of others are left out. Without ``has_inputs``, cells lack ``failing``,
    of which a backend that is wrong everywhere has gigabytes, and which only a search for causes
    and a gate look at. Raise CastigateError if a table is damaged, or if the tables disagree.
    """
    divergences, problems = _DivergenceRows(store, has_inputs), _read_problems(store)
    digests = dict(read_digests(store, has_examples=False))
    for batch in read_batches(store, "cases.parquet"):
        wanted = _is_wanted(batch, verdicts, backend).to_numpy(zero_copy_only=False)
        listed, at = np.cumsum(_listed_runs(batch)), 0
        for place, row in zip(
            np.flatnonzero(wanted).tolist(), batch.filter(pa.array(wanted)).to_pylist(), strict=True
        ):
            if skipped := int(listed[place - 1]) - at if place else 0:
                divergences.skip(skipped)
            at = int(listed[place])
            _share_strings(row)
            rules = row.pop("broken")
            broken = tuple(_broken_rule(row, each, divergences) for each in rules)
            digest = digests.pop((row["backend"], row["case"]), None)
            yield _with_problems(Cell(**row, broken=broken, answer_digest=digest), problems)
        if len(listed) and at < listed[-1]:
            divergences.skip(int(listed[-1]) - at)


def _listed_runs(batch: Any) -> NDArray[np.int64]:
    """Return how many rows of ``divergences.parquet`` each row of a batch of cases has."""
    broken = batch["broken"]
    runs = pc.struct_field(pc.list_flatten(broken), "runs").to_numpy(zero_copy_only=False)
    rows = pc.list_parent_indices(broken).to_numpy(zero_copy_only=False)
    counts = np.zeros(batch.num_rows, np.int64)
    np.add.at(counts, rows, np.minimum(runs, MOST_RUNS).astype(np.int64))
    return counts


def read_checks(
    store: RunStore, verdicts: Collection[str] = VERDICTS, backend: str | None = None
) -> Iterator[Cell]:
    """Yield the checks on dtype pairs whose verdict is in ``verdicts``, in the table's order.

    With ``backend``, those of others are left out. Raise CastigateError if a table is damaged.
    """
    problems, digests = _read_problems(store), dict(read_digests(store, has_examples=False))
    for batch in read_batches(store, "pairs.parquet"):
        for row in batch.filter(_is_wanted(batch, verdicts, backend)).to_pylist():
            _share_strings(row)
            digest = digests.get((row["backend"], row["check"]))
            yield _with_problems(_check(**row, answer_digest=digest), problems)


def _share_strings(row: dict[str, Any]) -> None:
    """Replace the strings of a row by equal ones of earlier rows; most occur thousands of times."""
    for name, value in row.items():
        if isinstance(value, str):
            row[name] = intern(value)


Problems = Mapping[CellKey, Sequence[Problem]]
"""The problems other than wrong values of casts, by backend and case or check."""


def _read_problems(store: RunStore) -> Problems:
    """Read ``problems.parquet``; raise CastigateError if a row is not a valid problem."""
    found: dict[CellKey, list[Problem]] = {}
    for batch in read_batches(store, "problems.parquet"):
        for row in batch.to_pylist():
            try:
                problem: Problem = decode_problem(json.loads(row["problem"]))
            except (ValueError, LookupError, TypeError):
                path = store.folder.display_path("problems.parquet")
                message = f"{path} holds `{row['problem'][:60]}`, which is no problem"
                raise CastigateError(f"{message}; {REPAIR_ADVICE}") from None
            found.setdefault((row["backend"], row["name"]), []).append(problem)
    return found


def _with_problems(cell: Cell, problems: Problems) -> Cell:
    own = tuple(problems.get((cell.backend, cell.name), ()))
    if not own:
        return cell
    # The script of a check is stored in its problem: the table of checks has no column for it.
    scripts = [each.script for each in own if isinstance(each, WrongEnd)]
    return replace(cell, problems=own, reproduction=scripts[0] if scripts else cell.reproduction)


def _check(
    case: str, rule: str | None, clause: str | None, level: str | None, **columns: Any
) -> Cell:
    edition, source, target, *mode = case.split("/")
    document, _, version = edition.partition(":")
    broken: tuple[Divergence, ...] = ()
    if rule is not None and clause is not None and level is not None:
        broken = (Divergence(rule, clause, level, 0, 0, "", None, None, (), (), ()),)
    return Cell(
        case=case,
        document=document,
        version=version,
        source=source,
        target=target,
        mode="/".join(mode),
        wrong=0,
        runs=0,
        reaches_ends=False,
        broken=broken,
        reproduction="",
        asked=None,
        answers=None,
        **columns,
    )


def read_verdicts(store: RunStore) -> Iterator[tuple[CellKey, str]]:
    """Yield the key and the verdict of each case of a run, which is faster than reading cells.

    Checks on dtype pairs are left out. Raise CastigateError if the table is damaged.
    """
    for batch in read_batches(store, "cases.parquet", ("backend", "case", "verdict")):
        backends, cases, verdicts = (batch[name].to_pylist() for name in batch.schema.names)
        yield from zip(zip(backends, cases, strict=True), verdicts, strict=True)


class _DivergenceRows:
    """Reads ``divergences.parquet``, whose rows follow the order of the cases' broken rules."""

    def __init__(self, store: RunStore, has_inputs: bool) -> None:
        self.has_inputs = has_inputs
        self._name = store.folder.display_path("divergences.parquet")
        self._groups = row_groups(store, "divergences.parquet")
        self._batches: Iterator[Any] = iter(())
        self._rest: Any = None
        self.known: WeakValueDictionary[tuple[object, ...], FailingInputs] = WeakValueDictionary()
        """Failing inputs in use, by the key of ``_failing``: cases that fail alike share them."""
        self.columns = KnownColumns()

    def skip(self, count: int) -> None:
        """Pass over the next ``count`` rows, or all that are left; most are not even read."""
        missing = count - sum(each.num_rows for each in self._begun(count))
        while missing > 0 and (group := next(self._groups, None)) is not None:
            if group.rows > missing:
                self._batches = group.read()
                missing -= sum(each.num_rows for each in self._begun(missing))
            else:
                missing -= group.rows

    def take(self, count: int, owner: tuple[str, str, str, str]) -> Any:
        """Return the next ``count`` rows as a table.

        Raise CastigateError if they do not belong to ``owner``, whose fields are those of
        ``OWNER``, or if there are fewer.
        """
        slices: list[Any] = []
        while (missing := count - sum(each.num_rows for each in slices)) > 0:
            more = self._begun(missing)
            if not more:
                if (group := next(self._groups, None)) is None:
                    break
                self._batches = group.read()
            slices += more
        rows = pa.Table.from_batches(slices).combine_chunks() if slices else None
        if rows is None or rows.num_rows != count or _owners(rows) != {owner}:
            raise CastigateError(
                f"{self._name} does not belong to its cases.parquet: "
                f"the runs of {owner[1]} are not in their place; {REPAIR_ADVICE}"
            )
        return rows

    def _begun(self, count: int) -> list[Any]:
        """Return up to ``count`` of the rows that are left of the group begun last, as batches."""
        slices: list[Any] = []
        while count > 0:
            if self._rest is None or not self._rest.num_rows:
                self._rest = next(self._batches, None)
                if self._rest is None:
                    break
            taken = self._rest.slice(0, count)
            self._rest = self._rest.slice(taken.num_rows)
            count -= taken.num_rows
            slices.append(taken)
        return slices


def _owners(rows: Any) -> set[tuple[str, ...]]:
    """Return the owners of the first and last row; the table is sorted, so that these suffice."""
    return {tuple(rows[name][index].as_py() for name in OWNER) for index in (0, -1)}


def _broken_rule(
    row: dict[str, Any], columns: dict[str, Any], divergences: _DivergenceRows
) -> Divergence:
    source, target = format_named(row["source"]), format_named(row["target"])
    columns["allowed"] = tuple(columns["allowed"])
    if not columns["runs"]:
        return Divergence(**columns, segments=(), shown_runs=())
    owner = row["backend"], row["case"], columns["rule"], columns["level"]
    listed = divergences.take(min(columns["runs"], MOST_RUNS), owner).drop_columns(list(OWNER))
    return Divergence(
        **columns,
        segments=_segments(source, listed),
        shown_runs=tuple(_shown_runs(source, target, listed)),
        failing=_failing(row, columns, listed, divergences),
    )


def _failing(
    row: dict[str, Any], columns: dict[str, Any], listed: Any, divergences: _DivergenceRows
) -> FailingInputs | None:
    if not divergences.has_inputs or row["verdict"] not in FAILING:
        return None
    key = row["source"], row["target"], columns["digest"], columns["wrong"], columns["runs"]
    found = divergences.known.get(key)
    if found is None:
        found = failing_inputs(listed, columns["wrong"], columns["runs"], divergences.columns)
        divergences.known[key] = found
    return found


def _segments(source: Format, listed: Any) -> tuple[int, ...]:
    if source.kind == "text":
        return ()
    if not listed["text"].null_count:
        # A pattern of more than 64 bits stands in the text column, in hex.
        wide = np.array([int(text, 16) for text in listed["text"].to_pylist()], object)
        return segments(source, wide, wide)
    first, last = (listed[name].drop_null().to_numpy() for name in ("first", "last"))
    return segments(source, first, last)


def _shown_runs(source: Format, target: Format, listed: Any) -> Iterator[ShownRun]:
    """Yield the first ``SHOWN_RUNS`` of the listed runs, and the last one if there are more.

    ``listed`` is an Arrow table with a row for each stored run of inputs of one divergence, without
    the columns ``OWNER``.
    """
    rows = listed.slice(0, SHOWN_RUNS).to_pylist()
    if listed.num_rows > SHOWN_RUNS:
        rows += listed.slice(listed.num_rows - 1).to_pylist()
    for row in rows:
        text = row["text"]
        answer, last_answer = row["answer_text"], row["last_answer_text"]
        yield ShownRun(
            source.hexadecimal(row["first"]) if text is None else text,
            source.hexadecimal(row["last"]) if text is None else text,
            row["count"],
            target.hexadecimal(row["answer"]) if answer is None else answer,
            target.hexadecimal(row["last_answer"]) if last_answer is None else last_answer,
            row["slope"],
            # Texts do not rise: of several, a page shows the first and the last.
            row["straight"] and (answer is None or row["slope"] == 0),
        )
