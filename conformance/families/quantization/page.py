"""The page of quantization in the report: a row for each pair, a column for each form of the scale.

All modes that are not the plain ones have a column together.
"""

from __future__ import annotations

from reports.html.modes import OTHER_MODES, ModesPage, Place
from specs.cases import Case
from specs.model.vocabulary import FORM, PRECISION, SATURATE, SCALE
from specs.operations import operation_of

LEAD = (
    "Numbers become codes by a scale and a zero point, and come back. Each row is a pair of "
    "dtypes, in the newest version of its document. The columns are forms of the scale, "
    "which has the dtype of the numbers: one for the tensor, one for each index of an axis, "
    "or one for each block. Scales of other dtypes, and modes that must be named, are in a "
    "column of their own. The sign is the worst verdict: point at it to read how many cases "
    "have which, or open it for the cases."
)


def place(case: Case) -> Place:
    """Return the place of a case: the row of its dtypes, and the column of its form.

    A case with modes that are not plain stands in a column for all of these; one without a form
    stands in a column without a name.
    """
    mode, filters = case.mode, {"from": case.source, "to": case.target}
    row, column = f"{case.source} → {case.target}", ""
    if FORM in mode and _has_plain_modes(case):
        column = mode[FORM]
        filters["q"] = f"{FORM}:{column} {SCALE}:{mode[SCALE]}"
    elif FORM in mode:
        column = OTHER_MODES
    return Place(row, column, filters, "dtypes")


def _has_plain_modes(case: Case) -> bool:
    mode = case.mode
    numbers = case.target if operation_of(case) == "dequantize" else case.source
    return mode[SCALE] == numbers and PRECISION not in mode and mode.get(SATURATE, "1") == "1"


PAGE = ModesPage("quantization", "Quantization", LEAD, place)
