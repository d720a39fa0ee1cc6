"""Makes the board of runs: chooses the row of each version of a backend, and encodes them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from typing import Generic, TypeVar, cast

from conformance.extras.board.asked import asked_pairs
from conformance.extras.board.board_file import (
    NOT_ASKED,
    AskedPair,
    Board,
    CaseBlock,
    CellKind,
    FindingText,
    Row,
    RowFinding,
)
from conformance.extras.board.rows import (
    Attempt,
    CellName,
    FailedAttempt,
    GoodRun,
)
from oracles.registry import framework_of, installed, installed_version
from reports.behaviors.known_answers import known_answers
from reports.dtype_order import usual_first
from reports.findings.finding import UNEXPLAINED, Finding
from reports.findings.roads import backend_and_road
from reports.judgement import Verdict
from reports.ledger.version_spans import public_version, version_order
from reports.run_store.record import LOCAL_FOLDERS
from specs import VERSION

OLD = timedelta(days=60)
"""The age from which on a run says little about today."""
NameList = tuple[str, ...]
CellTraits = tuple[str, tuple[int, ...]]
"""A verdict, and the places of the findings behind it."""


@dataclass(frozen=True)
class BoardRow:
    """A row of the board: the last good run of a version of a backend, if there is one.

    ``failed`` is a later run in which the backend answered nothing, and ``newer`` a later release
    that was not asked, or empty. ``since`` has by finding the first version that is known to have
    it, and the last one before that is known not to.
    """

    backend: str
    version: str
    good: GoodRun | None
    failed: FailedAttempt | None
    is_latest: bool
    newer: str
    since: Mapping[str, tuple[str, str]]

    def is_old(self, today: date) -> bool:
        """Return whether the run is older than ``OLD``."""
        return self.good is not None and today - self.good.day > OLD

    def since_of(self, finding: Finding) -> tuple[str, str]:
        """Return the versions that ``since`` has for a finding; two empty texts if unexplained."""
        return ("", "") if finding.name == UNEXPLAINED else self.since[finding.name]

    @property
    def reporter(self) -> str:
        """The name of whoever reported the row; empty if its run is our own."""
        reported = self.good.reported if self.good is not None else None
        return reported.by if reported is not None else ""


def rows_of(attempts: Iterable[Attempt]) -> list[BoardRow]:
    """Return a row for each version of each backend, the latest version of a backend first.

    Of several good runs of a version the last one counts. Backends are in the order in which
    ``attempts`` first has them; one backend reported by two people counts as two.
    """
    known: dict[tuple[str, str], list[Attempt]] = {}
    for each in attempts:
        reported = each.reported if isinstance(each, GoodRun) else None
        known.setdefault((each.backend, reported.by if reported else ""), []).append(each)
    every = [each for found in known.values() for each in found]
    return [row for found in known.values() for row in _rows_of_backend(found, every)]


def _rows_of_backend(attempts: Sequence[Attempt], every: Sequence[Attempt]) -> Iterator[BoardRow]:
    good: dict[str, GoodRun] = {}
    for each in sorted(_good(attempts), key=lambda one: one.started):
        good[each.version] = each
    ordered = sorted(good.values(), key=lambda one: version_order(one.version))
    failed = max(_failed(attempts), key=lambda one: one.started, default=None)
    if not ordered:
        assert failed is not None
        yield BoardRow(_shareable(failed.backend), failed.version, None, failed, True, "", {})
    for place in reversed(range(len(ordered))):
        run, is_latest = ordered[place], place == len(ordered) - 1
        is_overtaken = is_latest and failed is not None and failed.started > run.started
        newer = _newer_release(run, every) if is_latest else ""
        since = {name: _since(ordered[: place + 1], name) for name in run.names}
        later = failed if is_overtaken else None
        yield BoardRow(_shareable(run.backend), run.version, run, later, is_latest, newer, since)


def _shareable(backend: str) -> str:
    """Return a backend's name with the last name alone of each absolute path."""
    return LOCAL_FOLDERS.sub(r"\1", backend)


def _good(attempts: Iterable[Attempt]) -> Iterator[GoodRun]:
    return (each for each in attempts if isinstance(each, GoodRun))


def _failed(attempts: Iterable[Attempt]) -> Iterator[FailedAttempt]:
    return (each for each in attempts if isinstance(each, FailedAttempt))


def _since(runs: Sequence[GoodRun], finding: str) -> tuple[str, str]:
    """Return the first of the last versions with a finding, and the version before, or empty.

    ``runs`` are in the order of their versions, and the last has the finding.
    """
    first, before = runs[-1].version, ""
    for run in reversed(runs):
        if finding not in run.names:
            before = run.version
            break
        first = run.version
    return public_version(first), public_version(before)


def _newer_release(run: GoodRun, every: Sequence[Attempt]) -> str:
    """Return the latest release of a backend's framework that is known, if it is a later one.

    Known are those of all runs, that which is installed here, and that whose answers ship with
    Castigate.
    """
    framework = framework_of(run.backend)
    versions = [each.version for each in every if framework_of(each.backend) == framework]
    if framework in known_answers().frameworks:
        versions.append(known_answers().frameworks[framework].version)
    if framework in {*installed()}:
        versions.append(installed_version(framework))
    latest = max(map(public_version, versions), key=version_order)
    return latest if version_order(latest) > version_order(run.version) else ""


Entry = TypeVar("Entry", bound=Hashable)


class _Shared(Generic[Entry]):
    """A list that holds each value once; others refer to it by its place."""

    def __init__(self) -> None:
        self.places: dict[Entry, int] = {}

    def place(self, value: Entry) -> int:
        return self.places.setdefault(value, len(self.places))


def encode_board(rows: Sequence[BoardRow], today: date) -> Board:
    """Return the content of ``board.json`` for rows, as of a day."""
    encoder = _Encoder(rows)
    encoded = tuple(encoder.row(each, today) for each in rows)
    return Board(
        castigate=VERSION,
        made=today.isoformat(),
        asked=tuple(
            AskedPair(source=source, target=target, input=each.input, asks=each.asks)
            for (source, target), each in asked_pairs().items()
        ),
        findings=tuple(encoder.texts.places),
        targets=tuple(encoder.targets.places),
        modes=tuple(encoder.modes.places),
        cases=encoder.cases,
        rows=encoded,
    )


class _Encoder:
    """Encodes rows by the cases, lists and findings that they share."""

    def __init__(self, rows: Sequence[BoardRow]) -> None:
        self.targets, self.modes = _Shared[NameList](), _Shared[NameList]()
        self.texts = _Shared[FindingText]()
        names: dict[str, dict[CellName, None]] = {}
        for row in rows:
            for name in row.good.verdicts if row.good is not None else ():
                names.setdefault(name.edition, {})[name] = None
        self.order: dict[str, list[CellName]] = {}
        self.cases = {edition: self._blocks(edition, names[edition]) for edition in sorted(names)}

    def _blocks(self, edition: str, names: Iterable[CellName]) -> tuple[CaseBlock, ...]:
        """Return the cases of a document as blocks, and keep their order."""
        place = usual_first()
        modes: dict[tuple[str, str], list[str]] = {}
        for name in sorted(
            names,
            key=lambda each: [place.get(dtype, len(place)) for dtype in (each.source, each.target)],
        ):
            modes.setdefault((name.source, name.target), []).append(name.mode)
        blocks, order = [], list[CellName]()
        by_source = groupby(modes.items(), key=lambda item: item[0][0])
        for source, items in by_source:
            alike: dict[tuple[str, ...], list[str]] = {}
            for (_, target), found in items:
                alike.setdefault(tuple(sorted(found)), []).append(target)
            for of_modes, targets in alike.items():
                order += [
                    CellName(edition, source, target, mode)
                    for mode in of_modes
                    for target in targets
                ]
                blocks.append(
                    CaseBlock(
                        source=source,
                        targets=self.targets.place(tuple(targets)),
                        modes=self.modes.place(of_modes),
                    )
                )
        self.order[edition] = order
        return tuple(blocks)

    def _finding(self, finding: Finding) -> int:
        text = FindingText(name=finding.name, kind=finding.kind, says=finding.says)
        return self.texts.place(text)

    def row(self, row: BoardRow, today: date) -> Row:
        """Encode a row for ``board.json``."""
        good, (backend, road) = row.good, backend_and_road(row.backend)
        kinds = _Shared[CellTraits]()
        return Row(
            backend=backend,
            road=road,
            version=row.version,
            latest=row.is_latest,
            date=good.day.isoformat() if good is not None else None,
            run=good.digest if good is not None else None,
            tier=good.tier if good is not None else "",
            machine=good.machine if good is not None else "",
            newer=row.newer,
            old=row.is_old(today),
            reported=good.reported if good is not None else None,
            failed=row.failed.entry if row.failed is not None else None,
            answers=good.answers if good is not None else (None,) * len(asked_pairs()),
            findings=tuple(self._row_findings(row)),
            cells={} if good is None else self._cells(good, kinds),
            kinds=tuple(map(_cell_kind, kinds.places)),
        )

    def _row_findings(self, row: BoardRow) -> Iterator[RowFinding]:
        for each in row.good.findings.findings if row.good is not None else ():
            since, without = row.since_of(each)
            yield RowFinding(
                finding=self._finding(each),
                since=since,
                without=without,
                thread=each.upstream or "",
            )

    def _cells(self, good: GoodRun, kinds: _Shared[CellTraits]) -> dict[str, tuple[int, ...]]:
        found = {}
        own = {name.edition for name in good.verdicts}
        for edition, order in self.order.items():
            if edition in own:
                every = (_kind_of(good, name, kinds) for name in order)
                runs = ((kind, sum(1 for _ in same)) for kind, same in groupby(every))
                found[edition] = tuple(number for run in runs for number in run)
        return found


def _kind_of(good: GoodRun, name: CellName, kinds: _Shared[CellTraits]) -> int:
    verdict = good.verdicts.get(name)
    if verdict is None:
        return NOT_ASKED
    explained = good.findings.explained.get(name.case, ())
    return kinds.place((verdict, tuple(place for place, _ in explained)))


def _cell_kind(kind: CellTraits) -> CellKind:
    verdict, findings = kind
    return CellKind(verdict=cast("Verdict", verdict), findings=findings)
