"""The verdict on a case that was not answered, where an answer is due."""

from __future__ import annotations

from conformance.judging.asking import Ask
from conformance.judging.scripts import script
from conformance.judging.subject import Subject
from oracles.backend.replies import (
    Crashed,
    Declined,
    Malformed,
    NoAnswer,
    Raised,
    class_name,
    described,
    one_line,
)
from oracles.protocol import Bits
from reports.counterexample.drawing import datum_text
from reports.grading.divergences import datum_of
from reports.judgement import Judgement
from reports.problems import (
    BrokenAdapter,
    Died,
    Problem,
    Refused,
    Unoffered,
    WritesToInputs,
    WrongForm,
)
from specs.cases import Case
from specs.formats import Format, format_named
from specs.plain_text import plain_line


def broken_adapter(subject: Subject, case: Case) -> Judgement | None:
    """The verdict on a case whose bits the adapter changes; None if it does not."""
    for dtype in (case.source, case.target):
        if dtype in subject.broken:
            problem = BrokenAdapter(dtype, subject.broken[dtype])
            return Judgement(case.id, subject.name, "error", (problem,))
    return None


def without_answer(subject: Subject, case: Case, missing: NoAnswer, inputs: int) -> Ask[Judgement]:
    """The verdict on a case without an answer; ``inputs`` were asked."""
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
    """The verdict on a case that ends the backend's process."""
    died = Died(crash_message(format_named(case.source), missing))
    return Judgement(case.id, subject.name, "crashed", (died,))


def problem_of(missing: NoAnswer, where: str = "", **rule: str) -> Problem:
    """Describe a missing answer as a problem; ``where`` names the tensor."""
    match missing:
        case Declined(reason):
            return Unoffered(reason, where)
        case Crashed(death):
            return Died(plain_line(str(death)))
        case Raised(error, inputs):
            line = one_line(error)
            return Refused(class_name(error), line, inputs, where, **rule)  # type: ignore[arg-type]
        case Malformed(writes_to_inputs=True):
            return WritesToInputs(where, **rule)
        case Malformed(text):
            return WrongForm(text, where, **rule)


def refusal(expected_class: str | None, error: BaseException) -> str:
    """The text of a refusal: the error class that the document names, and what was raised."""
    return (f"expected {expected_class}, got " if expected_class else "") + described(error)


def crash_message(source: Format, crashed: Crashed) -> str:
    """How a process ended, and on which inputs if that is known."""
    inputs = crashed.death.inputs
    if inputs is None or not inputs.size:
        return crashed.text
    where = f" in shape {inputs.shape}" if len(inputs.shape) != 1 else ""
    return plain_line(f"{range_of(source, inputs.reshape(-1))}{where}: {crashed.death}")


def range_of(source: Format, part: Bits) -> str:
    """Name some consecutive inputs."""
    first, last = (datum_text(source, datum_of(part[end])) for end in (0, -1))
    return f"on {first}" if part.size == 1 else f"on {first} to {last} together"
