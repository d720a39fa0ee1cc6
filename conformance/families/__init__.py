"""The families of questions, one folder each, and the table by which the core finds them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from specs.operations import operation_of

if TYPE_CHECKING:
    from conformance.families.family import Family, NamedTensors
    from specs.cases import Case

FAMILIES: Mapping[str, str] = {
    "cast": "cast",
    "call": "cast",
    "bitcast": "bitcast",
    "quantize": "quantization",
    "dequantize": "quantization",
    "dynamic-quantize": "quantization",
    "block-quantize": "blocks",
    "block-dequantize": "blocks",
    "chain": "chains",
}
"""The folder of the family of each operation, and of chains."""


def family_of(case: Case) -> Family:
    """The family of a case; it is imported when a case of it is met first."""
    return _family(FAMILIES[operation_of(case)])


def tensors_of(case: Case) -> NamedTensors:
    """What the family of a case brings whose tensors have names."""
    found = family_of(case).tensors
    assert found is not None, f"{case.id} takes no named tensors"
    return found


def says(question: str, name: str) -> str:
    """The sentence of what a backend does instead, by the operation that is asked, or `chain`."""
    return str(import_module(f"{__name__}.{FAMILIES[question]}").says(name))


@cache
def _family(folder: str) -> Family:
    found: Family = import_module(f"{__name__}.{folder}").FAMILY
    return found
