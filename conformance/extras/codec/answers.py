"""Collects a codec's answers: to all inputs as runs of equal answers, or to a sample of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.extras.codec.asked_texts import asked_texts, given_to, numbers_asked
from conformance.extras.codec.c_program import symbol_hint
from conformance.extras.codec.process import (
    Advance,
    CodecAnswerBits,
    CodecFailedError,
    ManyRunsError,
    NotOpenedError,
    WordsOf64,
    seconds_of_children,
)
from conformance.extras.codec.target import AnySignature, CodecTarget
from conformance.extras.codec.ways import PROBES, CodecWay, find_way, way_words
from conformance.families.cast.breakpoints import breakpoints, distinct
from conformance.families.cast.quick_inputs import few_patterns, quick_inputs
from reports.counterexample.drawing import datum_with_value, quoted
from specs.branches import Ruling
from specs.errors import CastigateError
from specs.formats import EXHAUSTIVE_BITS

MOST_RUNS = 1 << 18
"""The most runs of equal answers in a part of a sweep; bfloat16 has 65,536 codes in all."""
MEASURED, MANY = 1 << 12, 1 << 18
"""Number of inputs by which a call is timed: of a Python function of one number, and of others."""
LONGEST_SWEEP = 600.0
"""Seconds that a sweep may take; a slower codec is asked a sample."""
SAMPLE_SECONDS = 10.0
"""Seconds that a sample may take, by the time of a call."""
MOST_SAMPLED = 1 << 24
MOST_OF_64_BITS = 1 << 22
"""The most inputs of a source of 64 bits: each is graded, and kept for the search for causes."""
MOST_WRITTEN = 1 << 18
"""The most inputs of which texts are asked: each text is read to be graded."""
PREFIX = 1 << 16
"""Number of 32-bit patterns that share their high 16 bits."""
SWEPT_BITS = 32
"""The bits of the widest sources of which all patterns can be asked."""
EDGES = 1 << 14
"""The most values of the target around which inputs of a source of 64 bits are drawn."""


@dataclass(frozen=True)
class CodecAnswers:
    """The answers of a codec to all inputs, or to a sample.

    If ``is_whole``, all inputs were asked: each has the answer that belongs to the greatest of
    ``inputs`` up to it. Otherwise ``inputs`` are all that were asked: selected ones and those of
    ``drawn`` random draws; ``reason`` tells why. Texts are never whole. ``called`` is the type of a
    C function, or the form of a Python one. ``asked`` counts inputs; the two times are those of
    asking, in seconds. ``left_out`` says what the codec was not asked after it refused it.
    """

    called: AnySignature | str
    inputs: NDArray[Any]
    codes: NDArray[Any]
    is_whole: bool
    asked: int
    seconds: float
    processor_seconds: float
    reason: str = ""
    drawn: int = 0
    left_out: str = ""

    @property
    def form(self) -> str:
        """How the codec is called: a C function's type, or the form of a Python one in words."""
        return way_words(self.called)

    def of(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Return the answers to the given inputs.

        If ``is_whole``, these may be any inputs, otherwise only those that were asked; of texts
        they must be all of them.
        """
        if self.inputs.dtype == object:
            return self.codes
        found: NDArray[Any] = self.codes[np.searchsorted(self.inputs, inputs, "right") - 1]
        return found


@dataclass(frozen=True)
class _AnsweredInputs:
    """The inputs that were asked, texts by their indices, with the codec's answers.

    ``drawn``, ``reason`` and ``left_out`` are as in ``CodecAnswers``.
    """

    inputs: WordsOf64
    answers: CodecAnswerBits
    count: int
    reason: str = ""
    drawn: int = 0
    left_out: str = ""


def ask_all(
    target: CodecTarget,
    rules: Ruling,
    signature: str | None,
    seconds: float,
    jobs: int,
    folder: Path,
    progress: Callable[[int, str], Advance],
) -> CodecAnswers:
    """Ask a codec all inputs, or a sample of them; return its answers.

    Of texts and of sources of 64 bits, a sample is asked. So it is of a source of more than 16 bits
    if all inputs would take too long, or if a sweep has too many runs of equal answers.
    ``signature`` is the C type that the user names, or None to try some. ``seconds`` limits one
    block of inputs, and ``jobs`` the processes at a time. Before a sweep or a sample, ``progress``
    is called with its number of inputs, and with an estimate in words; it returns a function that
    is called with the number of inputs that were done since its last call. C programs are compiled
    in ``folder``. Raise CastigateError if the codec cannot be called, fails for an input, gives an
    answer with too many bits or two answers to one input. Without ``signature``, raise it too for a
    library or Python function of one answer to all inputs.
    """
    try:
        way = find_way(target, rules, signature, seconds, folder)
        begin, used = monotonic(), seconds_of_children()
        asked = _ask(way, rules, jobs, progress)
        _check_steady(target, rules, way, asked)
    except NotOpenedError as error:
        raise CastigateError(_not_opened(target, str(error))) from None
    except CodecFailedError as error:
        raise CastigateError(_failed(target, rules, error)) from None
    _check_codes(target, rules, asked)
    return CodecAnswers(
        way.called,
        given_to(rules, asked.inputs),
        asked.answers.astype(rules.target.storage),
        not asked.reason,
        asked.count,
        monotonic() - begin,
        seconds_of_children() - used,
        asked.reason,
        asked.drawn,
        asked.left_out,
    )


def _ask(
    way: CodecWay, rules: Ruling, jobs: int, progress: Callable[[int, str], Advance]
) -> _AnsweredInputs:
    source = rules.source
    if source.kind == "text":
        return _ask_texts(way, rules)
    if source.bits <= EXHAUSTIVE_BITS:
        inputs = np.arange(1 << source.bits, dtype=np.uint64)
        answers, _ = way.process.answers(inputs)
        return _AnsweredInputs(inputs, answers, inputs.size)
    reason, pace = _too_slow(way, rules, jobs)
    if not reason:
        total = 1 << source.bits
        try:
            advance = progress(total, _estimate(total, pace / min(jobs, way.parts)))
            runs = way.process.sweep(total, way.parts, MOST_RUNS, jobs, advance)
            return _AnsweredInputs(*runs, total)
        except ManyRunsError:
            reason = "its answers change from input to input as no codec's do"
    inputs, drawn = _sample(rules, pace)
    advance = progress(inputs.size, _estimate(inputs.size, pace))
    answers, _ = way.process.answers(inputs)
    advance(inputs.size)
    return _AnsweredInputs(inputs, answers, inputs.size, reason, drawn)


def _ask_texts(way: CodecWay, rules: Ruling) -> _AnsweredInputs:
    """Ask the texts of numbers, and then the names of infinities and NaN.

    If the codec fails for a name, all names are left out: not every reader of numbers has names.
    """
    inputs, numbers = np.arange(asked_texts(rules).size, dtype=np.uint64), numbers_asked(rules)
    answers, _ = way.process.answers(inputs[:numbers])
    left_out = ""
    try:
        if numbers < inputs.size:
            names, _ = way.process.answers(inputs[numbers:])
            answers = np.concatenate([answers, names])
    except CodecFailedError as error:
        inputs = inputs[:numbers]
        left_out = f"the names of infinities and NaN: it {error.says}"
    reason = "texts have no end"
    return _AnsweredInputs(inputs, answers, inputs.size, reason, left_out=left_out)


def _too_slow(way: CodecWay, rules: Ruling, jobs: int) -> tuple[str, float]:
    """Return why a sweep would take too long (empty if it would not), and the seconds per input."""
    bits = rules.source.bits
    inputs = quick_inputs(rules.source.name, rules.target.name, 0, 0).astype(np.uint64)
    count = MEASURED if way.asks_one_by_one or way.is_program else MANY
    some = np.resize(inputs[:: max(1, inputs.size // MEASURED)], count)
    _, seconds = way.process.answers(some)
    pace = seconds / some.size
    if way.is_program and pace * MANY < SAMPLE_SECONDS:
        # The first lines were few, so that most of the time was that of starting the program.
        some = np.resize(some, MANY)
        _, seconds = way.process.answers(some)
        pace = seconds / some.size
    if bits > SWEPT_BITS:
        return f"all 2^{bits} would take too long", pace
    if rules.target.bits > EXHAUSTIVE_BITS or not rules.target.is_numeric:
        return f"almost each of all 2^{bits} has an answer of its own", pace
    processes = min(jobs, way.parts)
    whole_seconds = pace * (1 << bits) / processes
    if whole_seconds <= LONGEST_SWEEP:
        return "", pace
    return (
        f"a call takes {_time_words(pace)}, and all {1 << bits:,} inputs would take"
        f" {_time_words(whole_seconds)} in {processes} process{'es' if processes > 1 else ''}",
        pace,
    )


def _estimate(inputs: int, pace: float) -> str:
    return f"about {_time_words(inputs * pace)} at {1 / pace:,.0f} a second"


def _sample(rules: Ruling, pace: float) -> tuple[WordsOf64, int]:
    """Return a sample of inputs, and how many were drawn at random from all, repeats counted.

    ``pace`` is the seconds that an input takes, which limits the number of inputs.
    """
    source, target = rules.source, rules.target
    is_wide = source.bits > SWEPT_BITS
    limit = MOST_OF_64_BITS if is_wide else MOST_SAMPLED
    limit = limit if target.is_numeric else MOST_WRITTEN
    most = max(PROBES, min(limit, int(SAMPLE_SECONDS / pace)))
    telling = quick_inputs(source.name, target.name, 0, 0).astype(np.uint64)
    if not is_wide:
        edges = np.arange(0, 1 << source.bits, PREFIX, dtype=np.uint64)
        near = [edges, edges + np.uint64(1), edges + np.uint64(PREFIX - 1)]
        telling = distinct(np.concatenate([telling, *near]))
    if telling.size > most // 2 and target.is_numeric:
        telling = few_patterns(source.name, target.name, most // 2).astype(np.uint64)
    chance = np.random.default_rng(0)
    between = np.zeros(0, np.uint64)
    if is_wide and target.is_numeric:
        # Most patterns of 64 bits are beyond the range of a small float, or below it.
        between = _between_steps(rules, max(0, most - telling.size) // 2, chance)
    rest = max(0, most - telling.size - between.size)
    drawn = chance.integers(0, source.mask, rest, np.uint64, endpoint=True)
    return distinct(np.concatenate([telling, between, drawn])), drawn.size


def _between_steps(rules: Ruling, count: int, chance: np.random.Generator) -> WordsOf64:
    """Draw ``count`` inputs from the ranges between values of the target and their midpoints.

    Each range has the same chance, however many inputs it has.
    """
    source, target = rules.source, rules.target
    codes = np.linspace(0, target.max_code, min(EDGES, target.max_code + 1)).astype(np.uint64)
    edges = breakpoints(source, target, codes)
    at = chance.integers(0, edges.size - 1, count)
    return chance.integers(edges[at], edges[at + 1], dtype=np.uint64)


def _check_steady(
    target: CodecTarget, rules: Ruling, way: CodecWay, asked: _AnsweredInputs
) -> None:
    """Ask some of the inputs again, one at a time; raise CastigateError if an answer differs.

    A program is asked them in one batch, in the opposite order.
    """
    some = slice(None, None, max(1, asked.inputs.size // MEASURED))
    inputs, answers = asked.inputs[some], asked.answers[some]
    if way.is_program:
        inputs, answers = inputs[::-1], answers[::-1]
        again, _ = way.process.answers(inputs)
    else:
        again, _ = way.process.answers(inputs, 1)
    if (other := np.flatnonzero(again != answers)).size:
        at = int(other[0])
        first, second = (_answer_words(rules, each[at]) for each in (answers, again))
        raise CastigateError(
            f"target `{target.text}` answers {_input_words(rules, int(inputs[at]))} once by"
            f" {first} and once by {second}; a codec's answer depends on its input alone"
        )


def _check_codes(target: CodecTarget, rules: Ruling, asked: _AnsweredInputs) -> None:
    """Raise CastigateError for an answer with bits above those of the target format."""
    if not rules.target.is_numeric:
        return
    beyond = np.flatnonzero(asked.answers > rules.target.mask)
    if beyond.size:
        at = int(beyond[0])
        raise CastigateError(
            f"target `{target.text}` answers {_input_words(rules, int(asked.inputs[at]))} by"
            f" 0x{int(asked.answers[at]):x}, but {rules.target.name} has {rules.target.bits} bits;"
            " put the code in the lowest ones"
        )


def _input_words(rules: Ruling, place: int) -> str:
    if rules.source.kind == "text":
        return quoted(asked_texts(rules)[place])
    return datum_with_value(rules.source, place)


def _answer_words(rules: Ruling, answer: Any) -> str:
    if isinstance(answer, str):
        return quoted(answer)
    return datum_with_value(rules.target, int(answer))


def _failed(target: CodecTarget, rules: Ruling, error: CodecFailedError) -> str:
    """Return the message for a codec that failed, with the input if that is known."""
    where = (
        f" for {_input_words(rules, error.place)}" if error.has_input and error.place >= 0 else ""
    )
    verb, _, rest = error.says.partition(" ")
    if verb == "raised":
        return f"target `{target.text}` raised{where} {rest}; a codec answers every input"
    return f"target `{target.text}` {error.says}{where}"


def _not_opened(target: CodecTarget, said: str) -> str:
    if target.kind == "library" and "undefined symbol" in said:
        return (
            f"target `{target.text}`: {target.where} has no function"
            f" `{target.function}`{symbol_hint(target)}"
        )
    return f"target `{target.text}` cannot be loaded: {said}"


def _time_words(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes"), (1, "s"), (1e-3, "ms")):
        if seconds >= size * (2 if size >= 60 else 1):
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"
