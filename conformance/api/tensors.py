"""Judgements on quantizations, whose tensors have names: of functions, and of recorded arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from conformance.api.arrays import answers_of, array_of
from conformance.api.results import Result
from conformance.driver import BackendJudge
from conformance.families import tensors_of
from conformance.families.named_tensors import formats_given, formats_returned
from conformance.families.recorded_tensors import checked_arrays, element_words, judge_arrays
from conformance.judging.asking import Settings
from oracles.protocol import Bits, Unsupported
from oracles.registry import Backend
from reports.findings.find import find_findings
from reports.findings.judged_cells import cell_of
from reports.judgement import Judgement
from reports.problems import Problem, WrongShape, WrongTensor
from specs.cases import Case, Shape
from specs.errors import CastigateError
from specs.model.vocabulary import FORM
from specs.operations import SCALE, X, Y

TensorFunction = Callable[..., object]
WHERE_SCALES_LIE = {
    "axis": ", with a scale for each index of axis 1",
    "block": ", with a scale for each block of axis 1",
}
"""What a function must know of the scales, by the form of a case."""


def check_tensors(function: TensorFunction, case: Case, name: str) -> Result:
    """Ask a function the telling tensors of a case, and return how its document judges the answers.

    The function gets the tensors that an adapter's ``quantize`` gets, in that order, each as an
    array of its dtype; a zero point that is left out is an array of zeros. Raise CastigateError if
    it raises an exception, or returns no numbers of the target.
    """
    oracle = AskedQuantization(name, function)
    settings = Settings(asked_for=frozenset({case.document}), shows_usual_scales=True)
    judgement = BackendJudge(Backend(name, oracle), {}, settings).judge(case)
    if oracle.error is not None:
        raise oracle.error
    found = find_findings([cell_of(case, judgement, ())], dict[str, Bits]().__getitem__)
    return Result(case, judgement, found.get(judgement.backend, ()), is_whole=False)


class AskedQuantization:
    """A person's function in the place of a backend that quantizes; ``error`` is its first one."""

    version = ""

    def __init__(self, name: str, function: TensorFunction) -> None:
        self.name = name
        self.error: CastigateError | None = None
        self._function = function

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Decline: the function quantizes."""
        raise Unsupported("no cast")

    def quantize(self, case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        """Return the function's results by name; after an error it is called no more."""
        if self.error is not None:
            raise Unsupported("an error came before")
        try:
            return self._results(case, tensors)
        except CastigateError as error:
            self.error = error
            raise

    def _results(self, case: Case, tensors: Mapping[str, Bits]) -> dict[str, Bits]:
        formats, given = formats_given(case), dict(tensors)
        for left_out in tensors_of(case).optional(case):
            if left_out not in given:
                given[left_out] = np.zeros(given[SCALE].shape, formats[left_out].storage)
        arrays = [array_of(formats[name], given[name]) for name in formats if name in given]
        try:
            with np.errstate(all="ignore"):
                returned = self._function(*arrays)
        except Exception as error:
            shown = ", ".join(
                f"{name} {array.dtype}{list(array.shape)}"
                for name, array in zip(formats, arrays, strict=False)
            )
            raise CastigateError(
                f"{self.name} raised {type(error).__name__} for {shown}: {error}; it must take"
                f" these arrays, in this order{WHERE_SCALES_LIE.get(case.mode.get(FORM, ''), '')}"
            ) from error
        return _results_named(case, returned, self.name)


def _results_named(case: Case, returned: object, what: str) -> dict[str, Bits]:
    """Return the patterns of what is returned: one array, or several by name or in their order.

    ``what`` returned them. Raise CastigateError for anything else.
    """
    formats = formats_returned(case)
    if isinstance(returned, Mapping):
        named = dict(returned)
    else:
        several = returned if isinstance(returned, tuple) else (returned,)
        named = dict(zip(formats, several, strict=False)) if len(several) == len(formats) else {}
    if named.keys() != formats.keys():
        raise CastigateError(
            f"{what}: {case.id} has the results {', '.join(formats)}; give"
            + (" them in this order" if len(formats) > 1 else " this one")
            + ", or a dict by name"
        )
    return {name: answers_of(form, named[name], f"{what}.{name}") for name, form in formats.items()}


def judge_recorded(case: Case, arrays: Mapping[str, object], name: str) -> Result:
    """Return how a document judges recorded arrays by name: those given, and those returned.

    Raise CastigateError if an array is missing, unknown, of another shape, or has a number that is
    no value of its dtype.
    """
    tensors, answer = tensors_of_arrays(case, arrays)
    found = judge_arrays(case, tensors, answer)
    problems = tuple(_problems(case, found, tensors[X].shape, answer[Y].shape))
    judgement = Judgement(
        case.id,
        name,
        found["verdict"],
        problems,
        inputs=found.get("elements", answer[Y].size),
        open_inputs=found.get("open", 0),
    )
    return Result(case, judgement, (), is_whole=False)


def _problems(case: Case, found: Mapping[str, Any], given: Shape, got: Shape) -> Iterator[Problem]:
    """Yield the problem that ``judge_arrays`` found, if any."""
    if given != got:
        yield WrongShape(found["rule"], found["clause"], found["level"], given, got)
    elif "element" in found:
        shown = element_words(case, found["element"])
        yield WrongTensor(
            found["rule"],
            found["clause"],
            found["level"],
            found["element"]["result"],
            f"{shown.place} of {shown.inputs}",
            shown.got,
            shown.allowed,
            found["wrong"],
            found["elements"],
        )


def tensors_of_arrays(
    case: Case, arrays: Mapping[str, object]
) -> tuple[dict[str, Bits], dict[str, Bits]]:
    """Return the patterns of the tensors that a case takes and of those that it returns.

    Raise CastigateError as ``judge_recorded`` does.
    """
    formats = {**formats_given(case), **formats_returned(case)}
    if unknown := [name for name in arrays if name not in formats]:
        raise CastigateError(
            f"`{unknown[0]}` is no array of {case.id}; its arrays are {', '.join(formats)}"
        )
    return checked_arrays(
        case, {name: answers_of(formats[name], array, name) for name, array in arrays.items()}
    )
