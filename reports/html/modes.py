"""The pages of operations whose cases have modes by which people choose, such as a rule or a form.

A case of these has more than two dtypes. So a document is shown as a table of what its readers
choose by: the family of its operation says in which row and column a case stands. The findings
below tell how a system differs, each by its simplest element.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlencode

from reports.findings.finding import Finding
from reports.findings.finding_text import extent_words
from reports.findings.report import Report, Version
from reports.html.findings import finding_page
from reports.judgement import Verdict
from specs.cases import Case
from specs.loader import documents
from specs.model.vocabulary import operations
from specs.operations import of_family

OTHER_MODES = "other modes"
"""The last column, of cases whose modes no other column names."""
SEVERITY: tuple[Verdict, ...] = (
    "crashed", "error", "violates", "deviates", "differs", "open", "conforms", "unsupported",
    "not-run",
)  # fmt: skip
"""The first of these that several cases have is shown: it matters most to a user."""


@dataclass(frozen=True)
class Use:
    """The verdicts of one backend in the cases of one field of a ``DocumentTable``."""

    filters: str
    """The fragment of the list of cases that shows them."""
    verdicts: Counter[str] = field(default_factory=Counter)

    @property
    def worst(self) -> str:
        """The most severe verdict of the cases, which the field shows; see ``SEVERITY``."""
        return next(name for name in SEVERITY if self.verdicts[name])

    @property
    def words(self) -> str:
        """The number of cases with each verdict, in words."""
        counts = [(name, self.verdicts[name]) for name in SEVERITY]
        return ", ".join(f"{count:,} {name}" for name, count in counts if count)


@dataclass(frozen=True)
class DocumentTable:
    """The table of the newest version of a document; ``by`` says what its rows are.

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
class PageFinding:
    """A finding about documents of a page: the file of its own page, and its extent in words."""

    finding: Finding
    page: str
    extent: str


class Place(NamedTuple):
    """The row and the column in which a case stands, and the filters that show the cases there.

    ``by`` says what the rows of its document are.
    """

    row: str
    column: str
    filters: dict[str, str]
    by: str


class ModesPage(NamedTuple):
    """A page as a family describes it; ``place`` says where on it a case stands."""

    name: str
    title: str
    lead: str
    place: Callable[[Case], Place]


@dataclass(frozen=True)
class ShownPage:
    """A page: a table per document, and the findings of each backend about these documents."""

    name: str
    title: str
    lead: str
    tables: list[DocumentTable]
    differences: dict[str, list[PageFinding]]


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
        found = _differences(report, {*versions})
        yield ShownPage(page.name, page.title, page.lead, tables, found)


def _table(report: Report, version: Version, place: Callable[[Case], Place]) -> DocumentTable:
    cells = [each for each in report.cells.values() if (each.document, each.version) == version]
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


def _differences(report: Report, names: set[str]) -> dict[str, list[PageFinding]]:
    found: dict[str, list[PageFinding]] = {}
    for backend, findings in report.findings.items():
        for each in findings:
            if names & {explained.cell.document for explained in each.explained}:
                shown = PageFinding(each, finding_page(each), extent_words(each))
                found.setdefault(backend, []).append(shown)
    return found
