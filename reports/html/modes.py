"""The pages of operations whose cases have modes by which people choose, such as a rule or a form.

Their cases have more than two dtypes. So a page shows a document as a table with rows and columns
by such modes. The family of the operation decides in which row and column a case stands. Below, the
page lists the findings of each backend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode

from reports.dtype_order import usual_first
from reports.findings.finding import Finding
from reports.findings.report import Report, Version
from reports.judgement import Verdict
from specs.cases import Case
from specs.loader import documents
from specs.model.vocabulary import operations
from specs.operations import of_family

OTHER_MODES = "other modes"
"""The name of the last column of a table, for cases that belong to no other column."""
SEVERITY: tuple[Verdict, ...] = (
    "crashed", "error", "violates", "deviates", "differs", "open", "conforms", "unsupported",
    "not-run",
)  # fmt: skip
"""All verdicts, the most severe first; a field of a table shows the first that its cases have."""


@dataclass(frozen=True)
class Use:
    """A field of a ``DocumentTable``: a backend's verdicts in the cases of one row and column."""

    filters: str
    """The fragment of the address that shows these cases in the list of cases."""
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def worst(self) -> str:
        """The most severe verdict of the cases, by ``SEVERITY``, which the field shows."""
        return next(name for name in SEVERITY if self.verdicts[name])

    @property
    def words(self) -> str:
        """The number of cases with each verdict, in words."""
        counts = [(name, self.verdicts[name]) for name in SEVERITY]
        return ", ".join(f"{count:,} {name}" for name, count in counts if count)


@dataclass(frozen=True)
class DocumentTable:
    """The table of the newest version of a document; ``by`` says what its rows are.

    ``backends`` are those with a judged case. ``uses`` has, by row, and then by backend and column,
    the fields with cases.
    """

    document: str
    version: str
    title: str
    by: str
    backends: list[str]
    columns: list[str]
    uses: dict[str, dict[tuple[str, str], Use]]


class Place(NamedTuple):
    """The row and the column in which a case stands, and the filters that show the cases there.

    ``by`` says what the rows of its document are.
    """

    row: str
    column: str
    filters: dict[str, str]
    by: str


class ModesPage(NamedTuple):
    """A page as a family describes it; ``place`` returns where a case stands on the page.

    ``name`` is its file name without suffix, and ``lead`` its introduction.
    """

    name: str
    title: str
    lead: str
    place: Callable[[Case], Place]


@dataclass(frozen=True)
class ShownPage:
    """A page: a table per document, and the findings about these documents, by backend."""

    name: str
    title: str
    lead: str
    tables: list[DocumentTable]
    differences: dict[str, list[Finding]]


def mode_pages(report: Report) -> Iterator[ShownPage]:
    """Yield each page of modes for which the run has documents."""
    newest: dict[ModesPage, dict[str, Version]] = {}
    for operation in operations():
        for document, version in report.cases:
            if documents()[document].entry.operation == operation:
                page: ModesPage | None = of_family(operation, "page")
                if page is not None:
                    newest.setdefault(page, {})[document] = document, version
    for page, versions in newest.items():
        order = [document for document, _ in report.cases if document in versions]
        tables = [_table(report, versions[each], page.place) for each in dict.fromkeys(order)]
        found = {
            backend: [
                each
                for each in findings
                if any(explained.cell.document in versions for explained in each.explained)
            ]
            for backend, findings in report.findings.items()
        }
        differences = {backend: differing for backend, differing in found.items() if differing}
        yield ShownPage(page.name, page.title, page.lead, tables, differences)


def _table(report: Report, version: Version, place: Callable[[Case], Place]) -> DocumentTable:
    order = usual_first()
    cells = sorted(
        (each for each in report.cells.values() if (each.document, each.version) == version),
        key=lambda cell: (order[cell.source], order[cell.target]),
    )
    columns: dict[str, None] = {}
    uses: dict[str, dict[tuple[str, str], Use]] = {}
    document, number = version
    for cell in cells:
        row, column, own, by = place(cell.as_case)
        filters = {"document": f"{document}:{number}", "backend": cell.backend} | own
        columns[column] = None
        use = uses.setdefault(row, {}).setdefault((cell.backend, column), Use(urlencode(filters)))
        use.verdicts[cell.verdict] += 1
    answered = {each.backend for each in cells if each.is_judged}
    return DocumentTable(
        document,
        number,
        documents()[document].entry.title,
        by,
        [each for each in report.backends if each in answered],
        sorted(columns, key=lambda column: column == OTHER_MODES),
        uses,
    )
