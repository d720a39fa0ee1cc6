"""Casts, and the calls that make them: each element by itself."""

from conformance.families.cast.explanation import explain
from conformance.families.cast.judge import examine
from conformance.families.family import Family

FAMILY = Family("cast", examine, explain, is_by_input=True)
