"""The page of carriers in the report: a row for each carrier, a column for what it stores."""

from __future__ import annotations

from reports.html.modes import ModesPage, Place
from specs.cases import CARRIER, Case

LEAD = (
    "A carrier is an operation that should leave each value as it is, or convert it as a cast "
    "does: a product with one, the choice of an element, a store of another dtype. Each row is a "
    "carrier, in the newest version of its document. The sign is the worst verdict over the "
    "dtypes: point at it to read how many cases have which, or open it for the cases. A finding "
    "says which step is at fault: the load, the operation or the store."
)
SAME, OTHER = "same dtype", "another dtype"


def place(case: Case) -> Place:
    """Return the place of a case: the row of its carrier, and whether the dtype stays the same."""
    carrier = case.mode[CARRIER]
    column = SAME if case.source == case.target else OTHER
    return Place(carrier, column, {"q": f"{CARRIER}:{carrier}"}, "carriers")


PAGE = ModesPage("carriers", "Carriers", LEAD, place)
