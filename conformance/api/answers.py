"""Exact casts, and judgements on answers that people computed themselves."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.api.arrays import ML_DTYPES, answers_of, array_of, format_of, patterns_of
from conformance.api.case_choice import Mode, chosen_case
from conformance.api.results import Result
from conformance.api.tensors import check_tensors, judge_recorded
from conformance.driver import BackendJudge
from conformance.families.cast.quick_inputs import inputs_of
from conformance.judging.asking import Settings
from conformance.sweep.engine import swept
from conformance.sweep.input_progress import input_progress
from oracles.protocol import Bits
from oracles.reference.expectations import Expected, has_branch
from oracles.reference.reference_oracle import Casts
from oracles.reference.sweep_inputs import Dense
from oracles.registry import Backend
from reports.counterexample.drawing import datum_text
from reports.findings.find import find_findings
from reports.findings.finding_text import datum_words
from reports.findings.judged_cells import cell_of
from reports.grading.allowed_answers import Expectations, grade_answers
from reports.grading.divergences import datum_of, find_failures, wrong_values
from reports.judgement import Judgement, verdict_of
from reports.problems import WrongValues
from specs.branches import Ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import EXHAUSTIVE_BITS, Format
from specs.model.vocabulary import FORM
from specs.operations import SCALE, X, Y, takes_named_tensors, tensor_dtypes
from specs.outcomes import Rejected
from specs.ruling import ruling

__tracebackhide__ = True
"""Has pytest leave out this module's frames where a person's function raises an error."""
SEED, EXAMPLES = 0, 1000
"""The seed and the number of random inputs of the tier quick, as in a run."""
SWEPT_BITS = 32
"""The widest sources of which every input can be asked."""
CastFunction = Callable[[NDArray[Any]], object]


def cast(
    values: object,
    source: object,
    target: object,
    document: str | None,
    mode: Mode | None,
    bits: bool,
) -> NDArray[Any]:
    """Return the one answer that a document or yardstick gives to each value.

    Raise CastigateError for a value to which it has none, or leaves the answer open.
    """
    form, end = format_of(source), format_of(target)
    case = chosen_case(form, end, document, mode)
    given = patterns_of(form, values, "values")
    answers = _only_answers(case, ruling(case), given.reshape(-1)).reshape(given.shape)
    return answers if bits else array_of(end, answers)


def _only_answers(case: Case, rules: Ruling, inputs: Bits) -> Bits:
    """Return the answer to each input; raise CastigateError if a value has none, or several."""
    known, places = np.unique(inputs, return_inverse=True)
    expected = Expectations(independent=False).of(rules, known)
    missing = has_branch(expected.branch_indices, [*rules.open_branches, *rules.refused_branches])
    if (missing | rules.is_open)[places].any():
        at = int(np.flatnonzero((missing | rules.is_open)[places])[0])
        branch = rules.branches[int(expected.branch_indices[places[at]])]
        how = "refuses it" if isinstance(branch.outcome, Rejected) else "leaves it open"
        shown = datum_words(case.source, datum_text(rules.source, datum_of(inputs[at])))
        raise CastigateError(
            f"values[{at}] is {shown}: {case.document}:{case.version} {how} ({branch.rule}:"
            f" {branch.clause}); name rules that decide it, such as document='plain-cast:wraps'"
        )
    return Casts().cast(case, inputs)


def check(
    function: CastFunction,
    source: object,
    target: object,
    document: str | None,
    mode: Mode | None,
    every: bool,
) -> Result:
    """Ask a function telling inputs, or every one, and return how a document judges the answers.

    Where tensors have names, as those of a quantization, the function gets each of them. One that
    fails on most values of ml_dtypes' arrays, and on fewer codes, is judged on codes. Raise
    CastigateError if the function raises an exception, or returns no numbers of the target.
    """
    if not callable(function):
        raise CastigateError(f"`{function!r}` is no function; give one that takes an array")
    form, end = format_of(source), format_of(target)
    case = chosen_case(form, end, document, mode)
    if every and form.bits > SWEPT_BITS:
        raise CastigateError(
            f"every=True asks sources of up to {SWEPT_BITS} bits; {form.name} has {form.bits}"
        )
    oracle = AskedFunction(function, form, end)
    if takes_named_tensors(case):
        if every:
            raise CastigateError(f"every=True asks all inputs of a cast; {case.document} is none")
        return check_tensors(function, case, oracle.name)
    inputs = inputs_of(case, ruling(case), SEED, EXAMPLES)
    if form.name in ML_DTYPES:
        return _by_values_or_codes(oracle, case, inputs)
    answers = oracle.ask(inputs)
    is_whole = form.bits <= EXHAUSTIVE_BITS
    if not every or is_whole:
        return _judged(case, oracle.name, inputs, answers, is_whole)
    settings = Settings(asked_for=frozenset({case.document}))
    with input_progress() as begin:
        advance = begin(1 << form.bits)
        [judgement] = swept(
            BackendJudge(Backend(oracle.name, oracle), {}, settings),
            [case],
            Dense(1 << form.bits),
            0,
            1 << form.bits,
            lambda more, _: advance(more),
        )
    return _with_causes(case, judgement, inputs, answers, whole=True)


def _by_values_or_codes(oracle: AskedFunction, case: Case, inputs: Bits) -> Result:
    """Judge a function on all values of a small float; if most are wrong, on its codes.

    Decoders of projects without ml_dtypes take codes. The judgement on codes counts only if most
    answers are right. Otherwise raise the error of the call with values, if it has one.
    """
    by_values: Result | CastigateError
    try:
        by_values = _judged(case, oracle.name, inputs, oracle.ask(inputs), whole=True)
    except CastigateError as error:
        by_values = error
    if isinstance(by_values, CastigateError) or 2 * by_values.wrong > by_values.inputs:
        try:
            answers = replace(oracle, takes_codes=True).ask(inputs)
            by_codes = _judged(case, oracle.name, inputs, answers, whole=True)
        except CastigateError:
            pass  # The call with values tells the person more.
        else:
            if 2 * by_codes.wrong < by_codes.inputs:
                return replace(by_codes, takes_codes=True)
    if isinstance(by_values, CastigateError):
        raise by_values
    return by_values


@dataclass
class AskedFunction:
    """A person's function in the place of a backend, so that the engine of sweeps can ask it."""

    function: CastFunction
    form: Format
    end: Format
    takes_codes: bool = False
    name: str = field(init=False)
    version: str = field(default="", init=False)

    def __post_init__(self) -> None:
        self.name = getattr(self.function, "__name__", type(self.function).__name__)

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return the function's answers as patterns."""
        return self.ask(bits)

    def ask(self, inputs: Bits) -> Bits:
        """Return the answers to a row; raise CastigateError if there is none for each input."""
        given = inputs.copy() if self.takes_codes else array_of(self.form, inputs.copy())
        try:
            with np.errstate(all="ignore"):  # Casts of NaN warn, and warnings may be errors.
                returned = self.function(given)
        except (Exception, SystemExit) as error:
            advice = ""
            if isinstance(error, ValueError | TypeError) and self._takes_one_number(given):
                advice = "; it takes one number, so give np.vectorize of it"
            raise CastigateError(
                f"{self.name} raised {type(error).__name__} for a row of {inputs.size:,} inputs of"
                f" dtype {given.dtype}: {error}{advice}"
            ) from error
        answers = answers_of(self.end, returned, self.name)
        if answers.shape != inputs.shape:
            raise CastigateError(
                f"{self.name} returned the shape {answers.shape} for a row of {inputs.size:,}"
                " inputs; it must return one answer per input"
            )
        return answers

    def _takes_one_number(self, given: NDArray[Any]) -> bool:
        try:
            with np.errstate(all="ignore"):
                return np.ndim(self.function(given[0])) == 0  # type: ignore[arg-type]
        except (Exception, SystemExit):
            return False


def judge(
    inputs: object,
    answers: object,
    source: object,
    target: object,
    document: str | None,
    mode: Mode | None,
    name: str,
) -> Result:
    """Return how a document judges recorded answers; dtypes that are None are those of the arrays.

    Inputs may be several arrays by name, if the document says how to quantize. Raise CastigateError
    if the arrays have not one shape, or a value is none of its dtype.
    """
    if isinstance(inputs, Mapping):
        return _judge_named(inputs, answers, source, target, document, mode, name)
    form = format_of(source if source is not None else _dtype(inputs, "source"))
    end = format_of(target if target is not None else _dtype(answers, "target"))
    case = chosen_case(form, end, document, mode)
    if takes_named_tensors(case):
        names = ", ".join(tensor_dtypes(case).taken)
        raise CastigateError(
            f"{case.document} takes arrays by name: give inputs as a dict of {names}"
        )
    given = patterns_of(form, inputs, "inputs")
    got = answers_of(end, answers, "answers")
    if given.shape != got.shape or not given.size:
        raise CastigateError(
            f"inputs have the shape {given.shape} and answers {got.shape}; give one answer to each"
            " of at least one input"
        )
    return _judged(case, name, given.reshape(-1), got.reshape(-1), whole=False)


def _judge_named(
    inputs: Mapping[str, object],
    answers: object,
    source: object,
    target: object,
    document: str | None,
    mode: Mode | None,
    name: str,
) -> Result:
    """Return how a document judges recorded arrays that have names.

    Raise CastigateError as ``judge`` does, and if the document is none of quantization.
    """
    if document is None:
        raise CastigateError(
            "inputs are arrays by name, which a document of quantization has; name it, such as"
            " document='onnx-quantize-linear:25'"
        )
    results = answers if isinstance(answers, Mapping) else {Y: answers}
    form = format_of(source if source is not None else _dtype(inputs.get(X), "source"))
    end = format_of(target if target is not None else _dtype(results.get(Y), "target"))
    case = chosen_case(form, end, document, mode)
    if FORM in case.mode and SCALE in inputs:
        named = _modes_of_scale(inputs[SCALE], case) | dict(mode or {})
        case = chosen_case(form, end, document, named)
    if not takes_named_tensors(case):
        raise CastigateError(f"{document} is about casts; give one array of inputs, not a dict")
    return judge_recorded(case, {**inputs, **results}, name)


def _modes_of_scale(scale: object, case: Case) -> dict[str, object]:
    """Return the form and the dtype that an array of scales shows; neither if it shows none."""
    shape = getattr(scale, "shape", ())
    longer = [size for size in shape if size > 1]
    form = ("tensor", "axis", "block")[min(len(longer), 2)]
    dtype = getattr(scale, "dtype", None)
    found = {FORM: form}
    if dtype is not None and format_of(dtype).name != case.mode[SCALE]:
        found[SCALE] = format_of(dtype).name
    return dict(found)


def _dtype(array: object, parameter: str) -> object:
    name = {"source": "inputs", "target": "answers"}[parameter]
    if isinstance(array, str | os.PathLike):
        raise CastigateError(f"{name}: `{array}` is a path; read it first, as by numpy.load")
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        raise CastigateError(
            f"{name}: a {type(array).__name__} has no dtype; name it with {parameter}=…"
        )
    holds_objects = isinstance(array, np.ndarray) and array.dtype == object
    if holds_objects and not all(
        isinstance(each, str) for each in np.asarray(array).ravel().tolist()
    ):
        raise CastigateError(
            f"{name}: an array of objects has no dtype of numbers; convert it, as by"
            " .astype(np.float32)"
        )
    return dtype


def _judged(case: Case, name: str, inputs: Bits, answers: Bits, whole: bool) -> Result:
    rules = ruling(case)
    order = np.argsort(inputs, kind="stable")
    inputs, answers = inputs[order], answers[order]
    expected = Expectations(independent=False).of(rules, inputs)
    problems = tuple(_wrong(rules, inputs, expected, answers))
    opened = int(has_branch(expected.branch_indices, rules.open_branches).sum())
    if rules.is_open:
        opened = inputs.size
    judgement = Judgement(
        case.id,
        name,
        verdict_of(problems, rules.is_open),
        problems,
        inputs=inputs.size,
        open_inputs=opened,
        reaches_ends=whole,
    )
    return _with_causes(case, judgement, inputs, answers, whole)


def _wrong(rules: Ruling, inputs: Bits, expected: Expected, answers: Bits) -> Iterator[WrongValues]:
    grades = grade_answers(rules, inputs, expected, answers)
    if grades.any():
        branches = expected.branch_indices
        for failures, _ in find_failures(rules, inputs, branches, answers, grades):
            yield wrong_values(rules, failures)


def _with_causes(
    case: Case, judgement: Judgement, inputs: Bits, answers: Bits, whole: bool
) -> Result:
    """Return a result with the causes of wrong answers, looked for among ``inputs``."""
    stored = {"inputs": inputs, "answers": answers}
    cell = cell_of(case, judgement, tuple(stored))
    found = find_findings([cell], stored.__getitem__)
    return Result(case, judgement, found.get(judgement.backend, ()), whole)
