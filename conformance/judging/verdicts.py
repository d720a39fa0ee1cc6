"""Reaches the verdict on a case that got no answer where one is due; gets scripts that show it.

A script is the adapter's own, or else a command of castigate.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

import numpy as np

from conformance.judging.asking import Ask, Subject, ask
from conformance.judging.values import ask_values, value_request
from oracles.adapters.script_text import UNEVEN
from oracles.backend.remote_errors import place_of
from oracles.backend.replies import (
    Answered,
    Crashed,
    Declined,
    Malformed,
    NoAnswer,
    Raised,
    Reply,
    class_name,
    described,
    one_line,
)
from oracles.backend.requests import MethodRequest, Script
from oracles.protocol import Bits
from reports.counterexample.drawing import datum_text
from reports.grading.divergences import datum_of
from reports.judgement import Judgement
from reports.problems import (
    BrokenAdapter,
    Died,
    Problem,
    Refused,
    ShownDatum,
    Unoffered,
    WritesToInputs,
    WrongForm,
)
from specs.cases import Case
from specs.formats import Format, format_named
from specs.operations import of_family, operation_of
from specs.plain_text import plain_line, plain_text


def broken_adapter(subject: Subject, case: Case) -> Judgement | None:
    """Return the verdict ``error`` on a case if the adapter changes its dtypes' bits, else None."""
    for dtype in (case.source, case.target):
        if dtype in subject.broken:
            problem = BrokenAdapter(dtype, subject.broken[dtype])
            return Judgement(case.id, subject.name, "error", (problem,))
    return None


def answers_none(replies: Sequence[Reply]) -> bool:
    """Return whether a backend answers no listed request of a case, so that none is drawn.

    A backend that dies each time would be started again for each drawn tensor.
    """
    return not any(isinstance(reply, Answered) for reply in replies)


def without_answer(subject: Subject, case: Case, missing: NoAnswer, inputs: int) -> Ask[Judgement]:
    """Return the judgement on a case without an answer; ``inputs`` is how many were requested.

    An error that is known to come from one input has a script.
    """
    if isinstance(missing, Crashed):
        return crashed(subject, case, missing)
    if isinstance(missing, Declined):
        return Judgement(case.id, subject.name, "unsupported", (Unoffered(missing.text),))
    shown = missing.smallest if isinstance(missing, Raised) else None
    return Judgement(
        case.id,
        subject.name,
        subject.failed(case),
        (problem_of(missing),),
        inputs=inputs,
        reproduction=(yield from script(subject, case, shown)) if shown is not None else "",
    )


def crashed(subject: Subject, case: Case, missing: Crashed) -> Judgement:
    """Return the judgement on a case that ends the backend's process."""
    died = Died(crash_message(format_named(case.source), missing))
    return Judgement(case.id, subject.name, "crashed", (died,))


def problem_of(missing: NoAnswer, where: str = "", **rule: str) -> Problem:
    """Describe a missing answer as a problem; ``where`` names the tensor.

    ``rule`` has the rule, clause and level that an error or a malformed answer breaks, if any.
    """
    match missing:
        case Declined(reason):
            return Unoffered(reason, where)
        case Crashed(death):
            return Died(plain_line(str(death)))
        case Raised(error, inputs):
            line, place = one_line(error), getattr(error, "place", "") or place_of(error)
            return Refused(class_name(error), line, inputs, where, place=place, **rule)  # type: ignore[arg-type]
        case Malformed(writes_to_inputs=True):
            return WritesToInputs(where, **rule)
        case Malformed(text):
            return WrongForm(text, where, **rule)


def refusal(expected_class: str | None, error: BaseException) -> str:
    """Describe a refusal: the error class that the document names, if any, and what was raised."""
    return (f"expected {expected_class}, got " if expected_class else "") + described(error)


def crash_message(source: Format, crashed: Crashed) -> str:
    """Say how a process ended, and on which inputs if that is known."""
    inputs = crashed.death.inputs
    if inputs is None or not inputs.size:
        return crashed.text
    where = f" in shape {inputs.shape}" if len(inputs.shape) != 1 else ""
    return plain_line(f"{range_of(source, inputs.reshape(-1))}{where}: {crashed.death}")


def range_of(source: Format, part: Bits) -> str:
    """Name consecutive inputs by the first and the last, such as ``on 1 to 3 together``."""
    first, last = (datum_text(source, datum_of(part[end])) for end in (0, -1))
    return f"on {first}" if part.size == 1 else f"on {first} to {last} together"


def script(subject: Subject, case: Case, bits: Bits, answer: ShownDatum | None = None) -> Ask[str]:
    """Return a script that shows a failure on a tensor; empty if there is none or the run hides it.

    With a wrong ``answer`` to one input, the script's tensor makes the backend repeat it. If the
    adapter has no script, a cast or call of one element has a command of castigate instead.
    """
    if subject.settings.hides_unclaimed and not subject.claims(case):
        return ""
    if answer is not None:
        bits = yield from tensor_that_shows(case, bits, answer)
    shaped = of_family(operation_of(case), "tensor")
    command = "" if shaped else _command(subject.name, case, bits)
    shown = shaped.request(case, bits) if shaped else value_request(case, bits)
    match (yield from ask(Script(shown))):
        case Answered(text):
            return plain_text(text or command)
        case Raised(error) if command:
            return plain_text(f"{command}\n# the adapter's own script failed: {described(error)}")
    return ""


def script_of(subject: Subject, shown: MethodRequest) -> Ask[str]:
    """Return the adapter's script for a request; empty if it has none, or if the run hides it."""
    if subject.settings.hides_unclaimed and not subject.claims(shown.case):
        return ""
    match (yield from ask(Script(shown))):
        case Answered(text):
            return plain_text(text)
    return ""


def tensor_that_shows(case: Case, one: Bits, answer: ShownDatum) -> Ask[Bits]:
    """Return ``one``, or a row that repeats it if alone it gets an answer other than ``answer``.

    Vector instructions may answer otherwise than the loop that does the rest of a row.
    """
    match (yield from ask_values(case, one)):
        case Answered(alone) if datum_of(alone[0]) != answer:
            return np.resize(one, UNEVEN)
    return one


def _command(backend: str, case: Case, bits: Bits) -> str:
    if bits.shape != (1,):
        return ""
    given = datum_of(bits[0])
    shown = given if isinstance(given, str) else format_named(case.source).hexadecimal(given)
    return f"castigate explain {case.id} --backend {shlex.quote(backend)} -- {shlex.quote(shown)}"
