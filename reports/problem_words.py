"""Problems in words, as pages, tables and terminals show them.

The tables of a run hold these words, so that their bytes depend on them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reports.problems import (
    BrokenAdapter,
    BrokenPromise,
    ChangesWithLayout,
    ChangesWithShape,
    Died,
    DiffersFromVariant,
    Note,
    NotRefused,
    Origin,
    Problem,
    Refused,
    Unoffered,
    WritesToInputs,
    WrongByAnyReading,
    WrongElement,
    WrongEnd,
    WrongForm,
    WrongShape,
    WrongTensor,
    WrongValues,
)
from specs.formats import listed

PROMISES: Mapping[str, str] = {
    "dtype": "gives {0} instead of {1}",
    "converted": "gives {0} instead of {1} (nothing was converted)",
    "device": "gives a tensor on {0} instead of {1}",
    "member": "gives no {0} back",
    "other member": "the {0} is {1} instead of {2}",
    "member's shape": "the {0} has shape {1} instead of {2}",
    "member's value": "the {0}: {1} gives {2} instead of {3}",
    "returned": "gives {0} back",
    "own memory": "gives the receiver's memory, no copy",
    "shared memory": "gives a copy, not the receiver's memory",
    "not copied": "the result is a copy",
    "receiver": "the receiver is {0}, it was {1}",
    "receiver's shape": "the receiver has shape {0}, it had {1}",
    "receiver's bits": "the receiver holds other bits",
    "layer": "a Linear of {0}: {1}",
    "layer's parameter": "the {0} of a Linear is {1} instead of {2}",
    "layer's input": "a Linear takes no input of {0} afterwards: {1}",
    "layer's output": "a Linear gives {0} instead of {1} for {2}",
}
"""The words for each requirement besides values that a document may have."""


def joined_words(problems: Iterable[Problem]) -> str:
    """Describe problems in one line; wrong values are left out, because pages draw them."""
    return "; ".join(filter(None, map(words, problems)))


def words(problem: Problem) -> str:
    """Describe one problem; return an empty text for wrong values."""
    match problem:
        case WrongValues():
            return ""
        case WrongShape(given=given, got=got, wanted=None):
            return f"shape {given} gives shape {got}"
        case WrongShape(given=given, got=got, wanted=wanted):
            return f"shape {given} gives shape {got} instead of {wanted}"
        case WrongElement(shape=shape, layout=layout):
            changed = f"element {problem.index} is {problem.got} instead of {problem.wanted}"
            return f"shape {shape}{f', {layout}' if layout else ''}: {changed}"
        case WrongByAnyReading(readings=readings):
            return joined_words(readings)
        case ChangesWithShape(shape=shape):
            return f"shape {shape}: an element answers otherwise than in one row"
        case ChangesWithLayout(in_row=was, elsewhere=now, where=where, switch=switch):
            changed = f"{problem.given} answers {was} in one row, {now} at {where}"
            return f"{changed}; {switch}" if switch else changed
        case DiffersFromVariant(changed=number, inputs=inputs, road=road):
            return (
                f"{number} of {inputs} inputs answer otherwise than on {road}, the simplest"
                f" {problem.given}: {problem.there} there, {problem.here} here"
            )
        case WrongTensor(given=given, got=got, allowed=allowed):
            count = f"{problem.wrong:,} of {problem.inputs:,} inputs"
            named = "" if problem.tensor == "y" else f"{problem.tensor} "
            where = f"; {problem.where}" if problem.where else ""
            return f"{given} gives {named}{got}, not {' or '.join(allowed)}; {count}{where}"
        case WrongEnd(chain=chain, given=given, got=got, allowed=allowed):
            count = f"{problem.wrong:,} of {problem.inputs:,} inputs"
            answers = f"{given} gives {got}, not {' or '.join(allowed)}"
            return f"{chain} on {listed(problem.roads)}: {answers}; {count}"
        case NotRefused(but=but, given=None):
            return f"is not refused, but {but}"
        case NotRefused(error_class=error_class, layout=layout):
            asked = f" with {error_class}" if error_class else ""
            given = f"shape {problem.given}{f', {layout}' if layout else ''}"
            return f"{given} is not refused{asked}, but gives shape {problem.got}"
        case BrokenPromise(promise=promise, facts=facts, where=where):
            return _at(where, PROMISES[promise].format(*facts))
        case Refused(error=error, line=line, inputs=inputs, where=where, place=place):
            text = ": ".join(filter(None, (where, inputs, error_words(error, line, bool(place)))))
            return f"{text} ({place})" if place else text
        case WrongForm(what=text, where=where) | Unoffered(reason=text, where=where):
            return _at(where, text)
        case WritesToInputs(where=where):
            return _at(where, "the backend writes to the inputs it is given")
        case Died(how=how):
            return how
        case BrokenAdapter(dtype=dtype, how=how):
            return f"the adapter, not the framework: {dtype}: {how}"
        case Origin(words=text) | Note(text=text):
            return text


def error_words(error: str, line: str, is_of_adapter: bool) -> str:
    """Describe an error by its class and its text; one without a text by its class alone.

    The text tells the author of an adapter that is not Castigate's how to decline a case.
    """
    text = error if line == error else f"{error}: {line}"
    if is_of_adapter and error == "NotImplementedError":
        text += "; raise castigate.Unsupported to decline a case"
    return text


def _at(where: str, text: str) -> str:
    return f"{where}: {text}" if where else text
