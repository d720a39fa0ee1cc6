"""The schema of ``board.json``: verdicts by backend, version, road, document, pair and mode.

The cases of a document stand in one order for all rows, and a row has its cells in that order as
runs of equal ones. ``cells_of`` reads them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import chain, product, repeat
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from reports.judgement import Verdict
from specs.model.strict_model import StrictModel

FORMAT: Final = 1
MOST_BYTES = 1_000_000
"""The most bytes of a ``board.json`` of all backends that install."""
NOT_ASKED: Final = -1
"""Stands in place of a kind for a cell that the run did not ask."""
Index = Annotated[int, Field(ge=0)]
"""The place of an item in a list of the file, from 0."""
Day = Annotated[str, Field(pattern=r"^\d{4}-\d\d-\d\d$")]
HexDigest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class AskedPair(StrictModel):
    """A pair of the first screen: the input whose answer a cell shows, and why it tells."""

    source: str
    target: str
    input: str
    asks: str


class CaseBlock(StrictModel):
    """Cases of a document: one source, each of ``modes`` in turn, and in it each of ``targets``."""

    source: str
    targets: Index
    modes: Index


class FindingText(StrictModel):
    """A finding, which several backends may have: its name, kind and sentence."""

    name: str
    kind: str
    says: str


class RowFinding(StrictModel):
    """A finding of a row.

    ``since`` is the first version of the backend that is known to have it, and ``without`` the last
    one before that is known not to; it is empty if none is known. ``thread`` is a public thread
    about it, or empty.
    """

    finding: Index
    since: str
    without: str = ""
    thread: str = ""


class CellKind(StrictModel):
    """A verdict and the findings behind it, which many cells of a row share."""

    verdict: Verdict
    findings: tuple[Index, ...] = ()


class AskedAnswer(StrictModel):
    """A row's answer to the input of an asked pair, and the verdict on its case.

    ``word`` is empty if the run does not hold the answer.
    """

    word: str
    case: str
    verdict: Verdict


class Reported(StrictModel):
    """Who reported a row of which only a certificate was checked, and the certificate's digest.

    ``signer`` is the public key in hex that signed it, or empty.
    """

    by: str
    certificate: HexDigest
    signer: str
    result: Literal["pass", "fail"]


class FailedRun(StrictModel):
    """A later run in which the backend answered nothing."""

    date: Day
    version: str
    why: str


class Row(StrictModel):
    """A version of a backend on one road, by its last good run.

    ``road`` is the variant, empty for the usual one. ``date`` and ``run`` are the day and the
    digest of that run; they are None if there is no good run, and then there are no cells.
    ``latest`` says that no row has a later version of the backend. ``newer`` is a later release
    that is known and was not asked, or empty. ``old`` says that the run was more than 60 days old
    when the board was made. ``answers`` are those to the asked pairs, in their order; None if the
    run has no case of the pair.

    ``cells`` has for each document a list of numbers: a kind, how many cells in a row have it, the
    next kind, and so on. A kind is a place in ``kinds``, or -1 if the run did not ask the cells.
    """

    backend: str
    road: str
    version: str
    latest: bool
    date: Day | None
    run: HexDigest | None
    tier: str
    machine: str
    newer: str
    old: bool
    reported: Reported | None
    failed: FailedRun | None
    answers: tuple[AskedAnswer | None, ...]
    findings: tuple[RowFinding, ...]
    kinds: tuple[CellKind, ...]
    cells: dict[str, tuple[int, ...]]


class Board(StrictModel):
    """The content of ``board.json``.

    ``cases`` has the cases of each document, named ``DOCUMENT:VERSION``, as blocks that refer to
    the lists of ``targets`` and ``modes``. A row has cells of the newest version of each document
    in its run.
    """

    format: Literal[1] = FORMAT
    castigate: str
    made: Day
    asked: tuple[AskedPair, ...]
    findings: tuple[FindingText, ...]
    targets: tuple[tuple[str, ...], ...]
    modes: tuple[tuple[str, ...], ...]
    cases: dict[str, tuple[CaseBlock, ...]]
    rows: tuple[Row, ...]


class BoardCell(NamedTuple):
    """A cell of a row: the id of its case, its verdict, and the names of its findings."""

    case: str
    verdict: Verdict
    findings: tuple[str, ...]


def cells_of(board: Board, row: Row) -> Iterator[BoardCell]:
    """Yield the cells of a row that its run asked, in the order of ``cases``."""
    for document, runs in row.cells.items():
        kinds = chain.from_iterable(map(repeat, runs[::2], runs[1::2]))
        for case, kind in zip(_case_ids(board, document), kinds, strict=True):
            if kind == NOT_ASKED:
                continue
            found = row.kinds[kind]
            names = (board.findings[row.findings[each].finding].name for each in found.findings)
            yield BoardCell(case, found.verdict, tuple(names))


def _case_ids(board: Board, document: str) -> Iterator[str]:
    for block in board.cases[document]:
        for mode, target in product(board.modes[block.modes], board.targets[block.targets]):
            yield "/".join(filter(None, (document, block.source, target, mode)))


def board_bytes(board: Board) -> bytes:
    """Encode a board as JSON, with a line for each member, and for each item of a long one."""
    content = board.model_dump(mode="json")
    return _lines("{}", [_member(name, _long(value)) for name, value in content.items()]).encode()


def _long(value: object) -> str:
    match value:
        case list():
            return _lines("[]", map(_compact, value))
        case dict():
            return _lines("{}", (_member(name, _compact(each)) for name, each in value.items()))
    return _compact(value)


def _lines(brackets: str, items: Iterable[str]) -> str:
    return ",\n".join(items).join([f"{brackets[0]}\n", f"\n{brackets[1]}"])


def _member(name: str, text: str) -> str:
    return f"{json.dumps(name)}:{text}"


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def schema_text() -> str:
    """Return the JSON schema of ``board.json``."""
    return json.dumps(Board.model_json_schema(), indent=2) + "\n"
