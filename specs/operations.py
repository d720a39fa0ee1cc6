"""Looks up the operation of a case, and the functions of the family that has the operation."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pkgutil import resolve_name
from typing import Any, NamedTuple

from specs.cases import Case
from specs.model.vocabulary import FAMILIES_MODULE

X, SCALE, ZERO, GLOBAL, Y = "x", "scale", "zero", "global", "y"
"""The names of tensors, where an operation takes or returns several."""


class TensorDtypes(NamedTuple):
    """The dtypes of the tensors that a case may take and of those that it returns, by name."""

    taken: dict[str, str]
    returned: dict[str, str]


def of_family(operation: str, purpose: str) -> Any:
    """Return the object that the family of an operation names in the field ``purpose``, or None.

    Raise KeyError if no family has the operation.
    """
    return import_module(FAMILIES_MODULE).member_of(operation, purpose)


def methods_of_families() -> Mapping[str, str]:
    """Map each adapter method that only a family's requests call to the type that it returns."""
    found: Mapping[str, str] = import_module(FAMILIES_MODULE).METHODS
    return found


def problem_of_family(name: str) -> Any:
    """Return the class of problems that a family defines; raise KeyError if none has the name."""
    return resolve_name(import_module(FAMILIES_MODULE).PROBLEMS[name])


def operation_of(case: Case) -> str:
    """Return the operation of a case of a shipped document, such as `cast`."""
    from specs.loader import document_named  # Most backends' processes need no documents.

    return document_named(case.document).entry.operation


def is_by_input(operation: str) -> bool:
    """Return whether the documents of an operation rule each input by itself."""
    return operation in import_module(FAMILIES_MODULE).BY_INPUT


def is_cast(case: Case) -> bool:
    """Return whether a case is a cast, or a call that makes one: each element has a ruling."""
    return operation_of(case) in ("cast", "call")


def takes_named_tensors(case: Case) -> bool:
    """Return whether a case takes and returns tensors by name."""
    return of_family(operation_of(case), "tensors") is not None


def tensor_dtypes(case: Case) -> TensorDtypes:
    """Return the tensors that a case may take and those that it returns, with their dtypes.

    It must be a case that takes tensors by name.
    """
    dtypes: TensorDtypes = of_family(operation_of(case), "dtypes")(case)
    return dtypes
