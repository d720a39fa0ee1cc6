"""The former name of ``reports.diff.backend_comparison``, until its users are renamed."""

from reports.diff.backend_comparison import CaseComparison as Compared
from reports.diff.backend_comparison import Difference
from reports.diff.backend_comparison import compare_answers as compare

__all__ = ["Compared", "Difference", "compare"]
