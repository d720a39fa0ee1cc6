"""The pages of quantization and of blocks: which system follows which rule, and where not.

A case of these has more than two dtypes: a scale, a precision, a form, a rule for the scale. So a
document is shown as a table of what its readers choose by. That is the rule for the scale, where
systems differ under one name; in other documents it is the pair of dtypes. The findings below tell
how a system differs, each by its simplest block or element.
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
from reports.verdicts import BY_SEVERITY, WRONG
from specs.loader import documents
from specs.model.document import Operation

RULE = "rule"
"""The mode that names the rule for the scale."""
PAGES: Mapping[str, tuple[str, Sequence[Operation]]] = {
    "quantization": ("Quantization", ("quantize", "dequantize", "dynamic-quantize")),
    "blocks": ("Blocks", ("block-quantize", "block-dequantize")),
}
"""Each page's title, and the operations of its documents."""


@dataclass(frozen=True)
class Use:
    """The verdicts on one backend in the cases of one row."""

    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def worst(self) -> str:
        """The verdict that the row shows: the most severe one, or else that of most cases."""
        wrong = [name for name in BY_SEVERITY if name in WRONG and self.verdicts[name]]
        return wrong[-1] if wrong else self.verdicts.most_common(1)[0][0]

    @property
    def extent(self) -> str:
        """In how many of the cases, if not in all."""
        count, total = self.verdicts[self.worst], self.verdicts.total()
        return "" if count == total else f"{count:,} of {total:,}"


@dataclass(frozen=True)
class Row:
    """A rule, or a pair of dtypes, and what each backend does there."""

    name: str
    filters: str
    """The fragment of the list of cases that shows them, without the backend."""
    uses: dict[str, Use]


@dataclass(frozen=True)
class DocumentTable:
    """The newest version of a document, row by row; ``by`` says what a row is."""

    document: str
    version: str
    title: str
    by: str
    backends: list[str]
    rows: list[Row]


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
    rows: dict[str, Row] = {}
    for cell in cells:
        name, filters = _place(cell, is_by_rule=is_by_rule)
        row = rows.setdefault(name, Row(name, filters, {}))
        row.uses.setdefault(cell.backend, Use()).verdicts[cell.verdict] += 1
    document, number = version
    answered = {each.backend for each in cells if each.verdict not in ("unsupported", "not-run")}
    return DocumentTable(
        document,
        number,
        documents()[document].entry.title,
        "rule for the scale" if is_by_rule else "dtypes",
        [each for each in report.backends if each in answered],
        [*rows.values()],
    )


def _place(cell: Cell, *, is_by_rule: bool) -> tuple[str, str]:
    """The row of a cell, and the filters that show the row's cases."""
    edition = {"document": f"{cell.document}:{cell.version}"}
    if is_by_rule:
        rule = cell.as_case.mode.get(RULE, "")
        return rule, urlencode(edition | {"q": f"{RULE}:{rule}"})
    pair = {"from": cell.source, "to": cell.target}
    return f"{cell.source} → {cell.target}", urlencode(edition | pair)


def _differences(report: Report, names: set[str]) -> dict[str, list[Difference]]:
    found: dict[str, list[Difference]] = {}
    for backend, findings in report.findings.items():
        for each in findings:
            if names & {explained.cell.document for explained in each.explained}:
                shown = Difference(each, finding_page(each), extent_words(each))
                found.setdefault(backend, []).append(shown)
    return found
