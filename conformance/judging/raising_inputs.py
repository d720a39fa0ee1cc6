"""Names the inputs on which a backend raises an error or ends its process."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from conformance.judging.answers import Answer, Answered, Crashed, Unanswered
from oracles.protocol import Bits
from reports.counterexample.drawing import datum_text
from reports.diff.divergences import datum_of, simplicity
from specs.formats import Format
from specs.plain_text import plain_line

AskBits = Callable[[Bits], Answer]


def inputs_that_raise(source: Format, inputs: Bits, ask: AskBits) -> tuple[str, Bits | None]:
    """Name an input on which a backend raises, found by bisection: of texts the simplest.

    The second result is that input, if it raises alone.
    """
    if source.kind == "text":
        return _simplest_text(source, inputs, ask)
    part = inputs
    # Most backends that raise do so on all inputs of a dtype, and then on the first.
    if part.size > 1 and _raises(part[:1], ask):
        part = part[:1]
    while part.size > 1:
        half = part.size // 2
        if _raises(part[:half], ask):
            part = part[:half]
        elif _raises(part[half:], ask):
            part = part[half:]
        else:
            break
    return _range_of(source, part), part if part.size == 1 else None


def _simplest_text(source: Format, inputs: Bits, ask: AskBits) -> tuple[str, Bits | None]:
    """The last of the fewest simple texts that raise together, if it raises alone."""
    texts = np.array(sorted(inputs, key=lambda text: simplicity(source, text)), object)
    if _raises(texts[:1], ask):
        return _simplest(texts[:1])
    answered, raising = 1, texts.size
    while raising - answered > 1:
        middle = (answered + raising) // 2
        if _raises(texts[:middle], ask):
            raising = middle
        else:
            answered = middle
    one = texts[raising - 1 : raising]
    if _raises(one, ask):
        return _simplest(one)
    return "on no text alone, only on several of them together", None


def _simplest(one: Bits) -> tuple[str, Bits]:
    return f"on {one[0]!r}, the simplest text that raises the error", one


def _raises(inputs: Bits, ask: AskBits) -> bool:
    match ask(np.ascontiguousarray(inputs)):
        case Crashed() as crashed:
            raise Unanswered(crashed)
        case answer:
            return not isinstance(answer, Answered)


def crash_message(source: Format, crashed: Crashed) -> str:
    """How a process ended, and on which inputs if that is known."""
    inputs = crashed.death.inputs
    if inputs is None or not inputs.size:
        return crashed.text
    where = f" in shape {inputs.shape}" if len(inputs.shape) != 1 else ""
    return plain_line(f"{_range_of(source, inputs.reshape(-1))}{where}: {crashed.death}")


def _range_of(source: Format, part: Bits) -> str:
    first, last = (datum_text(source, datum_of(part[end])) for end in (0, -1))
    return f"on {first}" if part.size == 1 else f"on {first} to {last} together"
