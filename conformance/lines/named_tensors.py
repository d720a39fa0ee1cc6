"""Tensors that have names, as JSON lines have them, with their shapes.

A cast takes one value; other operations take values, scales and zero points. So `input` and
`output` of a line are objects here, whose members are tensors as those of a bitcast.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import prod
from typing import Any

from conformance.families import tensors_of
from conformance.families.family import Shape
from conformance.value_spelling import (
    NamedTensors,
    NestedDatum,
    OutputDatum,
    is_full_pattern,
    tensor,
    tensor_words,
)
from oracles.protocol import Bits
from specs.bitcast_shapes import format_shape
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.quantized_tensors import X, Y, operands_of, results_of

MOST_ELEMENTS = 1 << 12
"""The most elements of a line, where a tensor can be cut without a change of its scales."""


def formats_given(case: Case) -> dict[str, Format]:
    """The tensors that a case takes, by name, with their formats."""
    return {name: format_named(dtype) for name, dtype in operands_of(case).items()}


def formats_returned(case: Case) -> dict[str, Format]:
    """The tensors that a case returns, by name, with their formats."""
    return {name: format_named(dtype) for name, dtype in results_of(case).items()}


def listed_tensors(case: Case, seed: int) -> Iterator[dict[str, Any]]:
    """The quick tier's inputs of a case, large ones cut, as lines spell them."""
    formats = formats_given(case)
    for tensors in tensors_of(case).listed(case, seed, MOST_ELEMENTS):
        yield tensors_in_words(formats, tensors)


def tensors_in_words(formats: Mapping[str, Format], tensors: Mapping[str, Bits]) -> dict[str, Any]:
    """Named tensors in JSON, as a line may spell them."""
    return {name: tensor_words(formats[name], bits) for name, bits in tensors.items()}


def are_full_patterns(formats: Mapping[str, Format], given: OutputDatum) -> bool:
    """Whether all tensors are spelled as patterns of all digits, and with their shapes."""
    assert isinstance(given, NamedTensors)
    spelled = given.by_name.items()
    return all(is_full_pattern(formats[name], each) for name, each in spelled)


def tensors_given(case: Case, given: OutputDatum) -> dict[str, Bits]:
    """The tensors of an input; raise CastigateError if one is missing or has a wrong shape."""
    formats = formats_given(case)
    spelled = _members("input", case, formats, given)
    brings = tensors_of(case)
    _require("input", set(formats) - {*brings.optional(case)}, spelled)
    found = {
        name: tensor(form, spelled[name], f"input.{name}")
        for name, form in formats.items()
        if name in spelled
    }
    for name, shape in brings.shapes(case, found[X].shape):
        if name in found:
            found[name] = _in_shape(found[name], spelled[name], shape, f"input.{name}")
    return found


def tensors_returned(case: Case, x: Bits, output: OutputDatum) -> dict[str, Bits]:
    """The tensors of an output; a flat list takes the shape that is due."""
    formats = formats_returned(case)
    spelled = _members("output", case, formats, output)
    _require("output", set(formats), spelled)
    found = {name: tensor(form, spelled[name], f"output.{name}") for name, form in formats.items()}
    shapes = {Y: [x.shape], **dict(tensors_of(case).shapes(case, x.shape))}
    for name, bits in found.items():
        # Another shape of y breaks a rule, where a document has one about shapes.
        is_flat = isinstance(spelled[name], NestedDatum) and bits.shape == (x.size,)
        if name != Y or is_flat or not document_named(case.document).entry.tensors:
            found[name] = _in_shape(bits, spelled[name], shapes[name], f"output.{name}")
    return found


def _members(
    what: str, case: Case, formats: Mapping[str, Format], given: OutputDatum
) -> dict[str, Any]:
    """The tensors of an object as the line spells them; raise CastigateError for other names."""
    example = ", ".join(f'"{name}": …' for name in formats)
    if not isinstance(given, NamedTensors):
        raise CastigateError(f"`{what}` of {case.document} names tensors; write {{{example}}}")
    found = given.by_name
    if unknown := found.keys() - formats.keys():
        raise CastigateError(
            f"`{what}` has a tensor `{min(unknown)}`, which {case.document} has not;"
            f" write {{{example}}}"
        )
    return found


def _require(what: str, names: set[str], spelled: Mapping[str, Any]) -> None:
    if missing := names - spelled.keys():
        raise CastigateError(f"`{what}` has no tensor `{min(missing)}`")


def _in_shape(found: Bits, spelled: Any, shapes: Sequence[Shape], what: str) -> Bits:
    """A tensor in one of the shapes that it may have; a flat list takes the first of its size."""
    if found.shape in shapes:
        return found
    if isinstance(spelled, NestedDatum) and found.ndim == 1:
        for shape in shapes:
            if prod(shape) == found.size:
                return found.reshape(shape)
    wanted = " or ".join(dict.fromkeys(map(format_shape, shapes)))
    raise CastigateError(
        f"`{what}` has shape {format_shape(found.shape)}; beside this x it has {wanted}"
    )
