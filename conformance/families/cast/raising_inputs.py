"""Names the inputs on which a backend raises an error."""

from __future__ import annotations

import numpy as np

from conformance.judging.asking import Ask
from conformance.judging.values import ValueAnswer, ask_values
from conformance.judging.verdicts import range_of
from oracles.backend.replies import Answered, Crashed, Raised, Unanswered
from oracles.protocol import Bits
from reports.counterexample.drawing import quoted
from reports.grading.divergences import simplicity
from specs.cases import Case
from specs.formats import Format, format_named


def ask_and_locate(case: Case, inputs: Bits) -> Ask[ValueAnswer]:
    """The backend's answer to a tensor; an error names the inputs on which it is raised."""
    answer = yield from ask_values(case, inputs)
    if isinstance(answer, Raised):
        return (yield from located(case, inputs, answer.error))
    return answer


def located(case: Case, inputs: Bits, error: Exception) -> Ask[Raised]:
    """The error together with the inputs on which it is raised.

    They are found by bisection; of texts, the simplest one is. Raises ``Unanswered`` if the backend
    crashes.
    """
    source = format_named(case.source)
    if source.kind == "text":
        return Raised(error, *(yield from _simplest_text(case, source, inputs)))
    part = inputs
    # Most backends that raise do so on all inputs of a dtype, and then on the first.
    if part.size > 1 and (yield from _raises(case, part[:1])):
        part = part[:1]
    while part.size > 1:
        half = part.size // 2
        if (yield from _raises(case, part[:half])):
            part = part[:half]
        elif (yield from _raises(case, part[half:])):
            part = part[half:]
        else:
            break
    return Raised(error, range_of(source, part), part if part.size == 1 else None)


def _simplest_text(case: Case, source: Format, inputs: Bits) -> Ask[tuple[str, Bits | None]]:
    """Find the simplest text that raises an error, by bisecting the texts sorted by simplicity."""
    texts = np.array(sorted(inputs, key=lambda text: simplicity(source, text)), object)
    if (yield from _raises(case, texts[:1])):
        return _simplest(texts[:1])
    answered, raising = 1, texts.size
    while raising - answered > 1:
        middle = (answered + raising) // 2
        if (yield from _raises(case, texts[:middle])):
            raising = middle
        else:
            answered = middle
    one = texts[raising - 1 : raising]
    if (yield from _raises(case, one)):
        return _simplest(one)
    return "on no text alone, only on several of them together", None


def _simplest(one: Bits) -> tuple[str, Bits]:
    return f"on {quoted(one[0])}, the simplest text that raises the error", one


def _raises(case: Case, inputs: Bits) -> Ask[bool]:
    match (yield from ask_values(case, np.ascontiguousarray(inputs))):
        case Crashed() as crashed:
            raise Unanswered(crashed)
        case answer:
            return not isinstance(answer, Answered)
