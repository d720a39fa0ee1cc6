"""Tensors that have names: the request about them, lines that record them, and their verdict.

A cast takes one value; other operations take values, scales and zero points. So `input` and
`output` of a line are objects here, whose members are tensors as those of a bitcast. Each element
of a result is judged by itself, as in a run: codes by their scale and zero point. What a backend
computes itself, such as the scale of a block, is judged first, and then the codes by the scale that
it returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from conformance.families import tensors_of
from conformance.families.family import GradedTensor, Rule
from conformance.families.value_spelling import (
    ErrorDatum,
    InputDatum,
    NamedTensors,
    NestedDatum,
    OutputDatum,
    is_full_pattern,
    tensor,
    tensor_words,
)
from conformance.judging.asking import Ask
from oracles.backend.replies import Declined, Reply, malformed, stored
from oracles.backend.requests import MethodRequest
from oracles.protocol import Bits
from reports.grading.divergences import index_of_simplest
from specs.cases import Case, Shape, format_shape
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.operations import X, Y, tensor_dtypes

MOST_ELEMENTS = 1 << 12
"""The most elements of a line, where a tensor can be cut without a change of its scales."""


@dataclass(frozen=True, eq=False)
class AboutTensors(MethodRequest):
    """Request a case's operation on named tensors; the reply holds the results by name."""

    given: Mapping[str, Bits]
    method = "quantize"
    lacks = "does not quantize"
    script = "reproduce_quantize"

    @property
    def tensors(self) -> Mapping[str, Bits]:
        """The tensors by name: values, scales, zero points."""
        return self.given

    def checked(self, answer: Any) -> dict[str, Bits]:
        """Return the results in an answer by name, each an array of its dtype's patterns.

        Raise ``Unanswered`` if the answer is no mapping, lacks a result, or has one that is no such
        array.
        """
        results = tensor_dtypes(self.case).returned
        if not isinstance(answer, Mapping):
            raise malformed(f"the answer is {type(answer).__name__}, not a mapping of tensors")
        missing = [name for name in results if name not in answer]
        if missing:
            raise malformed(f"the answer has no tensor `{missing[0]}`")
        return {name: stored(format_named(dtype), answer[name]) for name, dtype in results.items()}


def ask_listed(case: Case, listed: Sequence[Mapping[str, Bits]]) -> Ask[list[Reply]]:
    """Ask a case's operation on tensors by name, one request each; return the replies in order.

    If the backend declines the first and the last, the others count as declined too: a backend that
    lacks a dtype would try and decline each of them.
    """
    ends = yield [AboutTensors(case, each) for each in (listed[0], listed[-1])[: len(listed)]]
    if all(isinstance(reply, Declined) for reply in ends):
        return [ends[0]] * len(listed)
    between: Sequence[Reply] = ()
    if len(listed) > len(ends):
        between = yield [AboutTensors(case, each) for each in listed[1:-1]]
    return [ends[0], *between, *ends[1:]]


def formats_given(case: Case) -> dict[str, Format]:
    """Return the formats of the tensors that a case may take, by name."""
    return {name: format_named(dtype) for name, dtype in tensor_dtypes(case).taken.items()}


def formats_returned(case: Case) -> dict[str, Format]:
    """Return the formats of the tensors that a case returns, by name."""
    return {name: format_named(dtype) for name, dtype in tensor_dtypes(case).returned.items()}


class NamedTensorLines:
    """Lists, spells and judges the JSON lines of a case whose tensors have names."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._given, self._returned = formats_given(case), formats_returned(case)

    def listed(self, seed: int, max_examples: int) -> Iterator[Any]:
        """Yield the inputs of the tier quick, but no drawn tensors, as JSON data.

        Tensors are cut to about ``MOST_ELEMENTS`` elements where that does not change their scales.
        ``max_examples`` has no effect.
        """
        for tensors in tensors_of(self._case).listed(self._case, seed, MOST_ELEMENTS):
            yield tensors_in_words(self._given, tensors)

    def spelled(self, given: InputDatum) -> Any:
        """Return a line's input in the spelling of ``listed``.

        Raise CastigateError if it does not fit the case.
        """
        return tensors_in_words(self._given, tensors_given(self._case, given))

    def judge(self, given: InputDatum, output: OutputDatum) -> dict[str, Any]:
        """Return as data the verdict on a line's output: named tensors, or an error.

        Each element of each tensor is judged. ``input_pattern`` and ``output_pattern`` are among
        the data where the line does not spell full patterns. Raise CastigateError if the tensors do
        not fit the case.
        """
        tensors, answer = tensors_given(self._case, given), None
        patterns: dict[str, Any] = {}
        if not are_full_patterns(self._given, given):
            patterns["input_pattern"] = tensors_in_words(self._given, tensors)
        if not isinstance(output, ErrorDatum):
            answer = tensors_returned(self._case, tensors[X], output)
            if not are_full_patterns(self._returned, output):
                patterns["output_pattern"] = tensors_in_words(self._returned, answer)
        return {**patterns, **judge_tensors(self._case, tensors, answer)}


def tensors_in_words(formats: Mapping[str, Format], tensors: Mapping[str, Bits]) -> dict[str, Any]:
    """Return named tensors as JSON data, each with its shape and its elements in hex."""
    return {name: tensor_words(formats[name], bits) for name, bits in tensors.items()}


def are_full_patterns(formats: Mapping[str, Format], given: OutputDatum) -> bool:
    """Whether every element of named tensors is spelled as a hex pattern with all digits."""
    assert isinstance(given, NamedTensors)
    spelled = given.by_name.items()
    return all(is_full_pattern(formats[name], each) for name, each in spelled)


def tensors_given(case: Case, given: OutputDatum) -> dict[str, Bits]:
    """Return the tensors of a line's input by name, in the shapes that the case wants.

    Raise CastigateError if ``given`` has no names, lacks a tensor that is not optional, or has one
    that is unknown to the case, of another shape, or with an element that is no value of its dtype.
    """
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
            is_flat = isinstance(spelled[name], NestedDatum)
            found[name] = in_shape(found[name], shape, f"input.{name}", is_flat)
    return found


def tensors_returned(case: Case, x: Bits, output: OutputDatum) -> dict[str, Bits]:
    """Return the tensors of a line's output by name; ``x`` is the input's tensor of that name.

    A flat list takes the shape that is due. ``y`` may have another shape if the document has a rule
    for shapes. Raise CastigateError as ``tensors_given`` does.
    """
    formats = formats_returned(case)
    spelled = _members("output", case, formats, output)
    _require("output", set(formats), spelled)
    found = {name: tensor(form, spelled[name], f"output.{name}") for name, form in formats.items()}
    shapes = {Y: [x.shape], **dict(tensors_of(case).shapes(case, x.shape))}
    for name, bits in found.items():
        # Another shape of y breaks a rule, where a document has one about shapes.
        is_list = isinstance(spelled[name], NestedDatum)
        is_flat = is_list and bits.shape == (x.size,)
        if name != Y or is_flat or not document_named(case.document).entry.tensors:
            found[name] = in_shape(bits, shapes[name], f"output.{name}", is_list)
    return found


def _members(
    what: str, case: Case, formats: Mapping[str, Format], given: OutputDatum
) -> dict[str, Any]:
    """Return the tensors of an input or output by name, as the line spells them.

    ``what`` is `input` or `output`, for errors. Raise CastigateError if ``given`` has no names, or
    one that is not in ``formats``.
    """
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


def in_shape(found: Bits, shapes: Sequence[Shape], what: str, is_list: bool) -> Bits:
    """Return a tensor in one of ``shapes``; a flat list takes the first of these that has its size.

    ``what`` is its name in errors, and ``is_list`` whether it is a list or array without a shape of
    its own. Raise CastigateError for any other shape.
    """
    if found.shape in shapes:
        return found
    if is_list and found.ndim == 1:
        for shape in shapes:
            if prod(shape) == found.size:
                return found.reshape(shape)
    wanted = " or ".join(dict.fromkeys(map(format_shape, shapes)))
    raise CastigateError(
        f"`{what}` has shape {format_shape(found.shape)}; beside this x it has {wanted}"
    )


def judge_tensors(
    case: Case,
    tensors: Mapping[str, Bits],
    answer: Mapping[str, Bits] | None,
    *,
    has_allowed: bool = True,
) -> dict[str, Any]:
    """Return as data the verdict on an answer, its rule, and what is allowed.

    ``tensors`` are the inputs by name. ``answer`` has the results by name; it is None if an error
    came instead. Without ``has_allowed``, the data lack the tensors of what is allowed. They count
    all ``elements``, and those that are ``wrong`` or ``open``. If some are wrong, they have the
    simplest wrong ``element`` of one result: the first that breaks a required rule, or else a
    recommended one. If ``y`` has another shape than ``x``, they have none of these.
    """
    if answer is not None and answer[Y].shape != tensors[X].shape:
        return _wrong_shape(case, tensors[X].shape)
    results = [*tensors_of(case).results(case, tensors, answer)]
    found = {"verdict": "conforms", **_rule_of_first(results)._asdict()}
    if all(each.is_open.all() for each in results):
        found["verdict"] = "open"
    element: dict[str, Any] = {}
    for level, verdict in (("required", "violates"), ("recommended", "deviates")):
        wrong = next((each for each in results if each.wrong(level).any()), None)
        if wrong is not None:
            at = index_of_simplest(*wrong.inputs, wrong.wrong(level))
            found = {"verdict": verdict, **wrong.rule(at)._asdict(), "level": level}
            element = {"element": _element(wrong, at, at_required=level == "required")}
            break
    found |= {
        "elements": sum(each.is_open.size for each in results),
        "wrong": sum(
            int(np.count_nonzero(each.wrong("required") | each.wrong("recommended")))
            for each in results
        ),
        "open": sum(int(np.count_nonzero(each.is_open)) for each in results),
        **element,
    }
    if not has_allowed:
        return found
    allowed_tensors = {
        each.name: {
            "shape": list(each.shape),
            "bits": [_one_or_several(each.allowed(at, False)) for at in range(each.is_open.size)],
        }
        for each in results
    }
    return found | {"allowed": allowed_tensors}


def _wrong_shape(case: Case, shape: tuple[int, ...]) -> dict[str, Any]:
    [(name, entry)] = document_named(case.document).entry.tensors.items()
    return {
        "verdict": "violates" if entry.level == "required" else "deviates",
        **Rule(name, entry.level, entry.clause)._asdict(),
        "allowed": {Y: {"shape": list(shape)}},
    }


def _rule_of_first(results: list[GradedTensor]) -> Rule:
    """Return the rule of the first element that is not open, or of the first element if all are.

    The fields are empty if the results have no elements.
    """
    for each in results:
        settled = np.flatnonzero(~each.is_open)
        if settled.size:
            return each.rule(int(settled[0]))
    [first, *_] = results
    return first.rule(0) if first.is_open.size else Rule("", "", "")


def _element(result: GradedTensor, at: int, *, at_required: bool) -> dict[str, Any]:
    answer = result.answer
    index = [int(each) for each in np.unravel_index(at, result.shape)] if result.shape else []
    output = None if answer is None else result.form.hexadecimal(int(answer.reshape(-1)[at]))
    return {
        "result": result.name,
        "index": index,
        **result.given(at),
        **({} if output is None else {"output": output}),
        "allowed": result.allowed(at, at_required),
    }


def _one_or_several(words: list[str]) -> list[str] | str:
    return words[0] if len(words) == 1 else words
