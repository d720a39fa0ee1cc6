"""Questions that documents, formats and backends answer: what ``explain`` and ``run`` show."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from shutil import rmtree
from subprocess import PIPE, Popen
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformance.api.arrays import array_of, format_of, patterns_of
from conformance.api.case_choice import chosen_case
from conformance.api.results import Printable
from conformance.driver import drive
from conformance.families import SHAPED_TENSORS, explain_of, tensor_of
from conformance.families.cast.pair_comparison import (
    NAMELESS,
    Named,
    Recorded,
    answers_by_framework,
    pair_lines,
    recorded_answers,
)
from conformance.families.family import WrittenQuestion
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.client import Client
from oracles.backend.loading import launch_configs, load_all
from oracles.reference.exact import Number, decode
from oracles.reference.reference_oracle import RejectedError
from oracles.registry import Backend
from reports.behaviors.known_answers import outdated
from reports.counterexample.drawing import datum_text
from reports.findings.finding import Finding
from reports.findings.read_findings import read_findings
from reports.grading.divergences import datum_of
from reports.run_store.open_run import open_run
from specs.cases import SHAPE, Case, format_shape
from specs.errors import CastigateError
from specs.formats import Format, every_format
from specs.loader import document_and_version, document_word, documents
from specs.operations import is_cast
from specs.questions import read_question

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, repr=False)
class Explanation(Printable):
    """What documents allow for one value, and what frameworks answer.

    ``told`` has for each of ``cases`` the rule, its level and clause, and what it allows.
    ``named`` has what the question names, which its first line answers first.
    """

    cases: tuple[Case, ...]
    told: tuple[Mapping[str, Any], ...]
    backends: tuple[Backend, ...]
    recorded: tuple[Recorded, ...]
    named: Named
    shown: tuple[str, ...] = ()
    """The lines about a case that is no cast; empty if the cases are casts."""

    @property
    def answers(self) -> dict[str, str]:
        """The answer of each framework in words, such as ``44`` or ``NaN``, by its name.

        Of what is no cast these are the data that the command's ``--json`` has, as texts.
        """
        if self.shown:
            return {name: str(each) for name, each in self.told[0]["answers"].items()}
        return dict(answers_by_framework(self.cases, self.told, self.backends, self.recorded))

    def lines(self) -> Iterator[str]:
        """Yield the lines that ``castigate explain`` prints."""
        if self.shown:
            yield from self.shown
            return
        is_graded = bool(self.named.frameworks)
        yield from pair_lines(
            self.cases, self.told, self.backends, self.recorded, self.named, is_graded
        )

    def to_arrow(self) -> pa.Table:
        """Return a table with a row per document: its case, rule, level, clause and answers."""
        import pyarrow as pa

        names = ("case", "input", "rule", "level", "clause", "allowed")
        rows = [{name: str(each.get(name, "")) for name in names} for each in self.told]
        return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in names]))


def explain(
    value: object, source: object, target: object, document: str | None, backends: Sequence[str]
) -> Explanation:
    """Return what documents allow for a value of a pair, and what frameworks answer.

    Without ``document`` these are all that list the pair. Without ``backends`` the answers come
    from the table of known answers. Raise CastigateError for what is no value of the source.
    """
    form, end = format_of(source), format_of(target)
    if isinstance(value, str):
        word = value
    elif np.ndim(value) != 0:  # type: ignore[arg-type]
        raise CastigateError(
            f"`{value}` is {np.size(value)} values; explain one at a time"  # type: ignore[arg-type]
        )
    else:
        pattern = patterns_of(form, [value], "value")[0]
        word = datum_text(form, datum_of(pattern))
    words = [*([document_word(document)] if document else []), form.name, end.name]
    cases = tuple(read_question(words).cases)
    named = [*backends] or outdated()
    with ExitStack() as stack:
        loaded = load_all(stack, launch_configs(named, (), DEFAULT_TIMEOUT))
        if not is_cast(cases[0]):
            return _explained_alone(cases[0], word, loaded)
        told = tuple(_told(case, word, loaded) for case in cases)
        known = [] if backends else recorded_answers(cases[0], told[0], named)
        interest = Named(tuple(backends), document is not None)
        return Explanation(cases, told, tuple(loaded), tuple(known), interest)


def _told(case: Case, word: str, backends: Sequence[Backend]) -> Mapping[str, Any]:
    explained = explain_of(case)(case, WrittenQuestion([word]))
    answers = {each.name: drive(explained.ask(), Client(each)) for each in backends}
    return {**explained.told, "answers": answers}


def _explained_alone(case: Case, word: str, backends: Sequence[Backend]) -> Explanation:
    """Return the answers that a document allows in a case of another operation than a cast."""
    told = _told(case, word, backends)
    lines = explain_of(case)(case, WrittenQuestion([word])).lines(dict(told))
    return Explanation((case,), (told,), tuple(backends), (), NAMELESS, tuple(lines))


def bitcast(
    values: object, source: object, target: object, document: str | None, bits: bool
) -> NDArray[Any]:
    """Return values whose bits are read as another dtype, in the shape that a document gives.

    Raise CastigateError if the widths differ and no document is named: documents differ there.
    """
    form, end = format_of(source), format_of(target)
    given = patterns_of(form, values, "values")
    if document is not None:
        known, version = document_and_version(document_word(document))
        edition = f"{known.name}:{version or list(known.entry.versions)[-1]}"
        if known.entry.operation not in SHAPED_TENSORS:
            raise CastigateError(f"{document} is no document of bitcasts; castigate.cast takes it")
        case = chosen_case(form, end, edition, {SHAPE: format_shape(given.shape)})
        shaped = tensor_of(case)
        assert shaped is not None
        try:
            answer = shaped.answer(case, given)
        except RejectedError as refusal:
            raise CastigateError(str(refusal)) from None
    elif form.bits != end.bits:
        raise CastigateError(
            f"{form.name} has {form.bits} bits and {end.name} {end.bits}; documents give the result"
            " different shapes, so name one, such as document='torch-view'"
        )
    else:
        answer = given.view(end.storage)
    return answer if bits else array_of(end, answer)


@dataclass(frozen=True, repr=False)
class Run(Printable):
    """A finished run: its folder, what the command printed about it, and its exit code.

    It is false if a backend fails in a case that it claims.
    """

    folder: str
    screen: tuple[str, ...]
    exit_code: int

    def __bool__(self) -> bool:
        return self.exit_code == 0

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """The causes of all failures, backend by backend."""
        found = read_findings(open_run(self.folder))
        return tuple(each for findings in found.values() for each in findings)

    def lines(self) -> Iterator[str]:
        """Yield the lines that ``castigate run`` prints."""
        yield from self.screen

    def to_arrow(self) -> pa.Table:
        """Return the table of all cases with their verdicts."""
        import pyarrow.parquet as pq

        return pq.read_table(os.path.join(self.folder, "cases.parquet"))


COMMAND = "import castigate; castigate.main()"


def run(
    backends: Sequence[str],
    selected: Sequence[str],
    sources: Sequence[object],
    targets: Sequence[object],
    tier: str,
    out: str | None,
) -> Run:
    """Run the command ``castigate run``, and return the finished run.

    Without ``out`` it is stored in a new temporary folder. Its progress goes to stderr. Raise
    CastigateError for what the command refuses.
    """
    folder = out or os.path.join(mkdtemp(prefix="castigate-"), "run")
    options = {
        "--backend": backends,
        "--document": selected,
        "--source": [format_of(each).name for each in sources],
        "--target": [format_of(each).name for each in targets],
        "--tier": [tier],
        "--out": [folder],
    }
    words = [f"{name}={value}" for name, values in options.items() for value in values]
    # In a process of its own: worker processes import the main module, and that of a person's
    # script may call this very function while it is imported.
    with Popen(
        [sys.executable, "-c", COMMAND, "run", *words],
        stdout=PIPE,
        stderr=PIPE,
        text=True,
        encoding="utf-8",
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        last = ""
        for last in process.stderr:
            sys.stderr.write(last)
        screen = process.stdout.read().splitlines()
    if process.returncode not in (0, 1, 3):
        if out is None:
            rmtree(os.path.dirname(folder))
        raise CastigateError(last.strip().removeprefix("castigate: ") or "the run was ended")
    return Run(folder, tuple(screen), process.returncode)


@dataclass(frozen=True)
class DocumentRow:
    """A document: its name and title, its operation, and its versions, the newest last."""

    name: str
    title: str
    operation: str
    versions: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.title}, {', '.join(self.versions)}"


@dataclass(frozen=True)
class FormatRow:
    """A dtype: its name, kind and width, its largest finite number, and what specials it has.

    ``largest`` is None for dtypes without numbers.
    """

    name: str
    kind: str
    bits: int
    largest: int | float | None
    has_infinity: bool
    has_nan: bool

    def __str__(self) -> str:
        specials = [("infinity", self.has_infinity), ("NaN", self.has_nan)]
        held = " and ".join(name for name, has in specials if has)
        largest = f", up to {self.largest:g}" if self.kind == "float" else ""
        return f"{self.name}: {self.kind}, {self.bits} bits{largest}" + (held and f", {held}")


ListedRow = TypeVar("ListedRow", DocumentRow, FormatRow)


@dataclass(frozen=True, repr=False)
class Listing(Printable, Generic[ListedRow]):
    """Rows that print one per line, by name: ``rows["onnx-cast"]``."""

    by_name: Mapping[str, ListedRow]

    def __iter__(self) -> Iterator[ListedRow]:
        return iter(self.by_name.values())

    def __len__(self) -> int:
        return len(self.by_name)

    def __getitem__(self, name: str) -> ListedRow:
        return self.by_name[name]

    def lines(self) -> Iterator[str]:
        """Yield a line per row."""
        yield from map(str, self)

    def to_arrow(self) -> pa.Table:
        """Return a table of all rows."""
        import pyarrow as pa

        return pa.Table.from_pylist([asdict(each) for each in self])


def document_rows() -> Listing[DocumentRow]:
    """Return all documents that Castigate encodes, by name."""
    rows = {}
    for name, document in documents().items():
        entry = document.entry
        rows[name] = DocumentRow(name, entry.title, entry.operation, tuple(entry.versions))
    return Listing(rows)


def format_rows() -> Listing[FormatRow]:
    """Return all dtypes that Castigate knows, by name."""
    return Listing({name: _format_row(form) for name, form in every_format().items()})


def _format_row(form: Format) -> FormatRow:
    largest: int | float | None = None
    if form.is_numeric:
        number = decode(form, form.max_code)
        assert isinstance(number, Number)
        value = number.significand * Fraction(2) ** number.exponent
        largest = float(value) if form.kind == "float" else int(value)
    has_nan = bool(form.kind == "float" and form.nan_codes)
    return FormatRow(form.name, form.kind, form.bits, largest, bool(form.entry.infinity), has_nan)
