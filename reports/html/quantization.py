"""The pages of quantization and of blocks: what each system can do, and whether it does it right.

A case of these has more than two dtypes: a scale, a precision, a form, a rule for the scale. So a
document is shown as a table of what its readers choose by. A row is a rule for the scale, where
systems differ under one name, and a column a dtype of elements; in other documents a row is a pair
of dtypes, and a column a form of the scale, or all modes that are not the plain ones. The findings
below tell how a system differs, each by its simplest block or element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from urllib.parse import urlencode

from reports.findings.cells import Cell
from reports.findings.finding import Finding
from reports.findings.finding_text import extent_words
from reports.findings.report import Report, Version
from reports.html.findings import finding_page
from reports.verdicts import Verdict
from specs.loader import documents
from specs.model.document import Operation
from specs.operations import operation_of
from specs.quantization_cases import FORM, PRECISION, SATURATE, SCALE

RULE, GLOBAL = "rule", "global"
"""The modes that name the rule for the scale, and whether there is a scale of all blocks."""
OTHER_MODES = "other modes"
"""The column of cases with scales of another dtype, with `precision`, or without `saturate`."""
SEVERITY: tuple[Verdict, ...] = (
    "crashed", "error", "violates", "deviates", "differs", "open", "conforms", "unsupported",
    "not-run",
)  # fmt: skip
"""The first of these that several cases have is shown: it matters most to a user."""
PAGES: Mapping[str, tuple[str, Sequence[Operation]]] = {
    "quantization": ("Quantization", ("quantize", "dequantize", "dynamic-quantize")),
    "blocks": ("Blocks", ("block-quantize", "block-dequantize")),
}
"""Each page's title, and the operations of its documents."""


@dataclass(frozen=True)
class Use:
    """The verdicts on one backend in the cases of one field."""

    filters: str
    """The fragment of the list of cases that shows them."""
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def worst(self) -> str:
        """The verdict that the field shows."""
        return next(name for name in SEVERITY if self.verdicts[name])

    @property
    def words(self) -> str:
        """The number of cases with each verdict, in words."""
        counts = [(name, self.verdicts[name]) for name in SEVERITY]
        return ", ".join(f"{count:,} {name}" for name, count in counts if count)


@dataclass(frozen=True)
class DocumentTable:
    """The newest version of a document; ``by`` says what its rows are.

    ``uses`` has a field for each row, backend and column in which there are cases.
    """

    document: str
    version: str
    title: str
    by: str
    backends: list[str]
    columns: list[str]
    uses: dict[str, dict[tuple[str, str], Use]]


@dataclass(frozen=True)
class Difference:
    """A finding about documents of a page: its page of the report, and how far it reaches."""

    finding: Finding
    page: str
    extent: str


@dataclass(frozen=True)
class QuantizationPage:
    """A page: a table per document, and the findings of each backend about these documents."""

    name: str
    title: str
    tables: list[DocumentTable]
    differences: dict[str, list[Difference]]


def quantization_pages(report: Report) -> Iterator[QuantizationPage]:
    """Yield the pages of which the run has documents."""
    for name, (title, operations) in PAGES.items():
        newest = {
            document: (document, version)
            for document, version in report.cases
            if documents()[document].entry.operation in operations
        }
        if newest:
            tables = [_table(report, each) for each in newest.values()]
            yield QuantizationPage(name, title, tables, _differences(report, set(newest)))


def _table(report: Report, version: Version) -> DocumentTable:
    cells = [each for each in report.cells.values() if (each.document, each.version) == version]
    is_by_rule = any(RULE in each.as_case.mode for each in cells)
    columns: dict[str, None] = {}
    uses: dict[str, dict[tuple[str, str], Use]] = {}
    for cell in cells:
        row, column, filters = _place(cell, is_by_rule=is_by_rule)
        columns[column] = None
        fields = uses.setdefault(row, {})
        use = fields.setdefault((cell.backend, column), Use(filters))
        use.verdicts[cell.verdict] += 1
    document, number = version
    answered = {each.backend for each in cells if each.is_judged}
    return DocumentTable(
        document,
        number,
        documents()[document].entry.title,
        "rule for the scale" if is_by_rule else "dtypes",
        [each for each in report.backends if each in answered],
        sorted(columns, key=lambda column: column == OTHER_MODES),
        uses,
    )


def _place(cell: Cell, *, is_by_rule: bool) -> tuple[str, str, str]:
    """The row and the column of a cell, and the filters that show the cases there."""
    mode = cell.as_case.mode
    filters = {"document": f"{cell.document}:{cell.version}", "backend": cell.backend}
    if is_by_rule:
        rule = mode.get(RULE, "")
        filters |= {"to": cell.target, "q": f"{RULE}:{rule}"}
        return rule, cell.target, urlencode(filters)
    filters |= {"from": cell.source, "to": cell.target}
    row, column = f"{cell.source} → {cell.target}", ""
    if GLOBAL in mode:
        column = f"global {mode[GLOBAL]}"
        filters["q"] = f"{GLOBAL}:{mode[GLOBAL]}"
    elif FORM in mode and _has_plain_modes(cell):
        column = mode[FORM]
        filters["q"] = f"{FORM}:{column} {SCALE}:{mode[SCALE]}"
    elif FORM in mode:
        column = OTHER_MODES
    return row, column, urlencode(filters)


def _has_plain_modes(cell: Cell) -> bool:
    """Whether a case has the plain modes, which no column names.

    The scale has the dtype of the numbers, no precision is given, and codes saturate.
    """
    mode = cell.as_case.mode
    numbers = cell.target if operation_of(cell.as_case) == "dequantize" else cell.source
    return mode[SCALE] == numbers and PRECISION not in mode and mode.get(SATURATE, "1") == "1"


def _differences(report: Report, names: set[str]) -> dict[str, list[Difference]]:
    found: dict[str, list[Difference]] = {}
    for backend, findings in report.findings.items():
        for each in findings:
            if names & {explained.cell.document for explained in each.explained}:
                shown = Difference(each, finding_page(each), extent_words(each))
                found.setdefault(backend, []).append(shown)
    return found
