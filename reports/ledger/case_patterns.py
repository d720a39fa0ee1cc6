"""The former name of ``reports.case_patterns``, until its users are renamed."""

from reports.case_patterns import all_ids, ids_of, is_known

__all__ = ["all_ids", "ids_of", "is_known"]
