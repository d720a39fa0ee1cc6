"""The page of blocks in the report: a row for each rule for the scale, a column for each dtype.

Systems differ in these rules under one name.
"""

from __future__ import annotations

from conformance.families.blocks.ruling import GLOBAL, RULE
from reports.html.modes import ModesPage, Place
from specs.cases import Case

LEAD = (
    "A block of numbers shares one scale, and several rules for that scale go under the "
    "same name. Each row is a rule, in the newest version of its document, and each column "
    "a dtype of elements. A backend that follows the rule conforms there. The sign is the "
    "worst verdict over all dtypes of numbers: point at it to read how many cases have "
    "which, or open it for the cases."
)


def place(case: Case) -> Place:
    """Return the place of a case: the row of its scale rule, and the column of its element dtype.

    A case without such a rule has the row of its dtypes, and the column of any global scale.
    """
    mode, filters = case.mode, {"from": case.source, "to": case.target}
    if RULE in mode:
        filters = {"to": case.target, "q": f"{RULE}:{mode[RULE]}"}
        return Place(mode[RULE], case.target, filters, "rule for the scale")
    row = f"{case.source} → {case.target}"
    if GLOBAL not in mode:
        return Place(row, "", filters, "dtypes")
    filters["q"] = f"{GLOBAL}:{mode[GLOBAL]}"
    return Place(row, f"global {mode[GLOBAL]}", filters, "dtypes")


PAGE = ModesPage("blocks", "Blocks", LEAD, place)
