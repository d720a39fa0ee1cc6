"""Exact casts, and judgements on answers that people computed themselves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.api.arrays import answers_of, array_of, format_of, patterns_of
from conformance.api.case_choice import Mode, chosen_case
from conformance.api.results import Result
from conformance.api.tensors import check_tensors, judge_recorded
from conformance.driver import BackendJudge
from conformance.families.cast.quick_inputs import inputs_of
from conformance.judging.subject import Settings
from conformance.sweep.engine import swept
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

    Where tensors have names, as those of a quantization, the function gets each of them. Raise
    CastigateError if the function raises an exception, or returns no numbers of the target.
    """
    form, end = format_of(source), format_of(target)
    case = chosen_case(form, end, document, mode)
    if every and form.bits > SWEPT_BITS:
        raise CastigateError(
            f"every=True asks sources of up to {SWEPT_BITS} bits; {form.name} has {form.bits}"
        )
    name = getattr(function, "__name__", type(function).__name__)
    if takes_named_tensors(case):
        if every:
            raise CastigateError(f"every=True asks all inputs of a cast; {case.document} is none")
        return check_tensors(function, case, name)
    inputs = inputs_of(case, ruling(case), SEED, EXAMPLES)
    answers = _asked(function, name, form, end, inputs)
    is_whole = form.bits <= EXHAUSTIVE_BITS
    if not every or is_whole:
        return _judged(case, name, inputs, answers, is_whole)
    oracle = AskedFunction(name, partial(_asked, function, name, form, end))
    settings = Settings(asked_for=frozenset({case.document}))
    [judgement] = swept(
        BackendJudge(Backend(name, oracle), {}, settings),
        [case],
        Dense(1 << form.bits),
        0,
        1 << form.bits,
        lambda *_: None,
    )
    return _with_causes(case, judgement, inputs, answers, whole=True)


class AskedFunction:
    """A person's function in the place of a backend, so that the engine of sweeps can ask it."""

    version = ""

    def __init__(self, name: str, ask: Callable[[Bits], Bits]) -> None:
        self.name = name
        self._ask = ask

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return the function's answers as patterns."""
        return self._ask(bits)


def _asked(function: CastFunction, name: str, form: Format, end: Format, inputs: Bits) -> Bits:
    """Return a function's answers to a row; raise CastigateError if it has none for each input."""
    try:
        returned = function(array_of(form, inputs.copy()))
    except Exception as error:
        raise CastigateError(
            f"{name} raised {type(error).__name__} for a row of {inputs.size:,} inputs of dtype"
            f" {form.name}: {error}; it must take one array, as np.vectorize makes it of a function"
            " of one number"
        ) from error
    answers = answers_of(end, returned, name)
    if answers.shape != inputs.shape:
        raise CastigateError(
            f"{name} returned the shape {answers.shape} for a row of {inputs.size:,} inputs; it"
            " must return one answer per input"
        )
    return answers


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
    dtype = getattr(array, "dtype", None)
    if dtype is None:
        raise CastigateError(f"a list has no dtype; name it with {parameter}=…")
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
