"""Renders the site of the board, which opens from a disk and loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from conformance.extras.board.asked import AskedInput, asked_pairs
from conformance.extras.board.badges import badge_file, badge_files
from conformance.extras.board.board_file import AskedAnswer, Board, board_bytes, schema_text
from conformance.extras.board.made_board import OLD, BoardRow
from conformance.extras.board.rows import CellName, GoodRun, WrongInput
from conformance.extras.board.threads import threads_by_pair
from reports.counterexample.drawing import DatumColumns, allowed_columns, datum_columns
from reports.dtype_order import usual_first
from reports.findings.finding_text import counted
from reports.findings.roads import road_groups
from reports.findings.verdict_signs import SIGNS_AND_MEANINGS
from reports.html.case_details import SharedValues
from reports.html.columns import WIDE
from reports.html.page_data import data_file
from reports.html.site import STATIC
from reports.judgement import BY_SEVERITY, NOT_RUN, VERDICTS
from specs.formats import Format, format_named, spellings
from specs.plain_text import plain_text

OWN_STATIC = Path(__file__).with_name("static")
WORST_FIRST: tuple[str, ...] = (
    *(each for each in reversed(BY_SEVERITY) if each not in NOT_RUN),
    *NOT_RUN,
)
"""The order of the groups of a page: what is wrong, what is right, and what was not asked."""
BORROWED = ("style.css", "site.js", "columns.js", "drawing.js", "icon.svg")
"""The files of the report that the board uses, too."""


@dataclass(frozen=True)
class BoardColumn:
    """A backend on the first screen: its row, the file of its badge, and what limits the row.

    A road stands beside the plain backend of its ``framework``, by its short ``name``. If it gave
    the same answers it is folded: the plain backend ``folds`` it.
    """

    row: BoardRow
    badge: str
    notes: tuple[str, ...]
    is_stale: bool
    framework: str = ""
    name: str = ""
    is_folded: bool = False
    folds: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The part of an address that names the backend."""
        return f"{self.row.backend}@{self.row.reporter}" if self.row.reporter else self.row.backend

    @property
    def findings(self) -> str:
        """How many findings the run has, in words; empty without a good run."""
        good = self.row.good
        return counted(len(good.findings.findings), "finding") if good is not None else ""


@dataclass(frozen=True)
class BackendLine:
    """A pair on the first screen, with the answer of each column."""

    asked: AskedInput
    answers: tuple[AskedAnswer | None, ...]


def site_files(rows: Sequence[BoardRow], board: Board, today: date) -> Iterator[tuple[str, bytes]]:
    """Yield the path and the content of each file of the site."""
    columns = [*_by_framework(_column(row, today) for row in rows if row.is_latest)]
    for name, text in _pages(columns, board, today):
        yield name, plain_text(text).encode()
    yield "board.json", board_bytes(board)
    yield "board.schema.json", schema_text().encode()
    yield from badge_files(rows, today)
    for file in (*(STATIC / name for name in BORROWED), *sorted(OWN_STATIC.iterdir())):
        yield f"static/{file.name}", file.read_bytes()
    yield "data/board.js", data_file("board", _index_data(columns, rows))
    for source in _sources(columns):
        yield f"data/{source}.js", data_file(source, _source_data(columns, source))


def _by_framework(columns: Iterable[BoardColumn]) -> Iterator[BoardColumn]:
    """Yield columns framework by framework, with their names and the roads that they fold."""
    known = {each.key: each for each in columns}
    for group in road_groups(known):
        plain = known[group.plain]
        folded = [each for each in group.roads if _answers_alike(known[each], plain)]
        yield replace(plain, name=group.plain, folds=tuple(map(group.road_of, folded)))
        for key in group.roads:
            name, is_folded = group.road_of(key), key in folded
            yield replace(known[key], framework=group.framework, name=name, is_folded=is_folded)


def _answers_alike(road: BoardColumn, plain: BoardColumn) -> bool:
    """Return whether a road gave all answers of its plain backend, and has the same notes."""
    return (road.notes, _answers(road)) == (plain.notes, _answers(plain))


def _column(row: BoardRow, today: date) -> BoardColumn:
    notes = []
    if row.reporter:
        notes.append(f"reported by {row.reporter}")
    if row.failed is not None:
        notes.append(f"the run of {row.failed.day} failed: {row.failed.why}")
    if row.newer:
        notes.append(f"{row.newer} was not asked")
    if row.is_old(today):
        notes.append(f"older than {OLD.days} days")
    is_stale = row.good is None or bool(row.newer) or row.is_old(today)
    return BoardColumn(row, badge_file(row), tuple(notes), is_stale)


def _pages(columns: Sequence[BoardColumn], board: Board, today: date) -> Iterator[tuple[str, str]]:
    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name) for name in ("reports.html", __package__ or "")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    answers = zip(*(_answers(each) for each in columns), strict=True)
    lines = [BackendLine(*each) for each in zip(asked_pairs().values(), answers, strict=True)]
    shown = {each.verdict for line in lines for each in line.answers if each is not None}
    environment.globals |= {
        "navigation": [],
        "signs_and_meanings": SIGNS_AND_MEANINGS,
        "explained_verdicts": [each for each in VERDICTS if each in shown],
        "columns": columns,
        "road_groups": road_groups(each.key for each in columns),
        "is_wide": len(columns) > WIDE,
        "board": board,
        "today": today,
        "old_days": OLD.days,
    }
    for file, template in (("index.html", "board.html"), ("pair.html", "board_pair.html")):
        yield file, environment.get_template(template).render(file=file, lines=lines)


def _answers(column: BoardColumn) -> tuple[AskedAnswer | None, ...]:
    good = column.row.good
    return good.answers if good is not None else (None,) * len(asked_pairs())


def _sources(columns: Sequence[BoardColumn]) -> list[str]:
    found = {
        name.source
        for each in columns
        for name in (each.row.good.verdicts if each.row.good is not None else ())
    }
    return [each for each in usual_first() if each in found]


def _index_data(columns: Sequence[BoardColumn], rows: Sequence[BoardRow]) -> dict[str, Any]:
    """Return what all pages need: backends, verdicts, asked pairs, threads, and spellings."""
    return {
        "rows": [
            {
                "name": each.row.backend,
                "key": each.key,
                "version": each.row.version,
                "date": each.row.good.day.isoformat() if each.row.good is not None else "",
                "tier": each.row.good.tier if each.row.good is not None else "",
                "notes": each.notes,
                "stale": each.is_stale,
                "answers": [
                    answer and [answer.word, answer.case, answer.verdict]
                    for answer in _answers(each)
                ],
                "findings": [*_findings(each.row)],
                "earlier": [*_earlier(each, rows)],
            }
            for each in columns
        ],
        "verdicts": {
            name: {"name": name, "sign": sign, "meaning": meaning}
            for name, (sign, meaning) in SIGNS_AND_MEANINGS.items()
        },
        "asked": {"/".join(pair): [each.input, each.asks] for pair, each in asked_pairs().items()},
        "threads": {
            "/".join(pair): [[each.link, each.report] for each in threads]
            for pair, threads in threads_by_pair().items()
        },
        "dtypes": [*usual_first()],
        "sources": _sources(columns),
        "spellings": {word: names[0] for word, names in spellings().items()},
        "old": OLD.days,
    }


def _findings(row: BoardRow) -> Iterator[dict[str, str]]:
    for each in row.good.findings.findings if row.good is not None else ():
        since, without = row.since_of(each)
        yield {
            "says": each.says,
            "kind": each.kind,
            "since": since,
            "without": without,
            "thread": each.upstream or "",
            "intended": each.intended or "",
        }


def _earlier(column: BoardColumn, rows: Sequence[BoardRow]) -> Iterator[list[Any]]:
    """Yield the version, the day and the words of each older row of a column's backend."""
    for each in rows:
        is_of_it = (each.backend, each.reporter) == (column.row.backend, column.row.reporter)
        if is_of_it and not each.is_latest and each.good is not None:
            words = [answer and (answer.word or answer.verdict) for answer in each.good.answers]
            yield [each.version, each.good.day.isoformat(), words]


def _source_data(columns: Sequence[BoardColumn], source: str) -> dict[str, Any]:
    """Return the cells of the pairs with one source: by target, a list per column.

    Cases of a column that are wrong in the same way are one group.
    """
    examples = SharedValues()
    pairs: dict[str, list[list[Any]]] = {}
    for place, column in enumerate(columns):
        good = column.row.good
        for target, names in _by_target(good, source).items() if good is not None else ():
            assert good is not None
            pairs.setdefault(target, []).append([place, _groups(good, names, examples)])
    return {"pairs": pairs, "examples": examples.values}


def _by_target(good: GoodRun, source: str) -> dict[str, list[CellName]]:
    found: dict[str, list[CellName]] = {}
    for name in good.verdicts:
        if name.source == source:
            found.setdefault(name.target, []).append(name)
    return found


def _groups(good: GoodRun, names: Sequence[CellName], examples: SharedValues) -> list[Any]:
    """Return groups of cases, the worst first: verdict, cases, and findings with examples.

    Instead of a finding's place there is -1 for a broken rule that no finding explains.
    """
    found: dict[Hashable, tuple[str, list[list[str]], list[tuple[int, WrongInput]]]] = {}
    for name in names:
        verdict, case = good.verdicts[name], name.case
        shown = [*good.findings.explained.get(case, ())]
        if not shown and case in good.broken:
            shown = [(-1, good.broken[case])]
        key = (verdict, *((place, each.rule if place < 0 else "") for place, each in shown))
        _, cases, _ = found.setdefault(key, (verdict, [], shown))
        cases.append([name.edition, name.mode])
    ordered = sorted(found.values(), key=lambda each: WORST_FIRST.index(each[0]))
    pair = tuple(map(format_named, names[0][1:3]))
    return [
        [
            verdict,
            cases,
            [
                [place, examples.index_of((pair, each), lambda each=each: _example(pair, each))]
                for place, each in shown
            ],
        ]
        for verdict, cases, shown in ordered
    ]


def _example(pair: tuple[Format, ...], example: WrongInput) -> dict[str, Any]:
    source, target = pair
    is_drawn = bool(example.smallest)
    return {
        "rule": example.rule,
        "level": example.level,
        "clause": example.clause,
        "wrong": example.wrong,
        "exact": example.is_exact,
        "smallest": _columns(source, example.smallest) if is_drawn else None,
        "allowed": [allowed_columns(target, each) for each in example.allowed],
        "answer": _columns(target, example.answer) if is_drawn else None,
        "told": example.told,
        "script": example.script,
    }


def _columns(form: Format, text: str) -> DatumColumns:
    if form.kind != "text" and not text.startswith("0x"):
        return text, "", ""
    return datum_columns(form, text if form.kind == "text" else int(text, 16))
