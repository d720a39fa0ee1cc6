"""Collects a codec's answers: to all inputs as runs of equal answers, or to a sample of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.extras.codec.c_program import WrongSignatureError, build, check_widths, symbol_hint
from conformance.extras.codec.process import (
    Advance,
    CodecFailedError,
    CodecProcess,
    ManyRunsError,
    NotLoadedError,
    NotOpenedError,
    Words32,
    python_command,
    seconds_of_children,
)
from conformance.extras.codec.python_worker import (
    BLOCK,
    FORM_WORDS,
    FORMS,
    NOT_USED,
    asks_one_by_one,
)
from conformance.extras.codec.target import CodecTarget, Signature, signature_named, signatures
from conformance.families.cast.quick_inputs import few_patterns, quick_inputs
from oracles.reference.breakpoints import distinct
from oracles.reference.staircase import staircase
from reports.counterexample.drawing import datum_with_value
from reports.grading.allowed_answers import ALLOWED
from reports.grading.staircase_grades import grade_by_staircase
from specs.branches import Ruling
from specs.errors import CastigateError
from specs.formats import EXHAUSTIVE_BITS

C_BLOCK = 1 << 12
"""Inputs that a C program asks at a time; the same number stands in ``driver.c``."""
C_PARTS, PYTHON_PARTS = 16, 2
"""Parts of a sweep, a process each; fewer for Python, whose processes take longer to start."""
MOST_RUNS = 1 << 18
"""The most runs of equal answers in a part of a sweep; bfloat16 has 65,536 codes in all."""
PROBES = 256
"""About the most inputs on which the ways to call a codec are compared; the least of a sample."""
FITTING = 0.5
"""The share of right answers that a way to call a codec must exceed to seem right."""
MEASURED, MANY = 1 << 12, 1 << 18
"""Number of inputs by which a call is timed: of a Python function of one number, and of others."""
LONGEST_SWEEP = 600.0
"""Seconds that a sweep may take; a slower codec is asked a sample."""
SAMPLE_SECONDS = 10.0
"""Seconds that a sample may take, by the time of a call."""
MOST_SAMPLED = 1 << 24
PREFIX = 1 << 16
"""Number of 32-bit patterns that share their high 16 bits."""


@dataclass(frozen=True)
class CodecAnswers:
    """The answers of a codec to all inputs, or to a sample.

    If ``is_whole``, all inputs were asked: each has the code that belongs to the greatest of
    ``inputs`` up to it. Otherwise ``inputs`` are all that were asked: selected ones and those of
    ``drawn`` random draws; ``reason`` tells why. ``called`` is the type of a C function, or the
    form of a Python one. ``asked`` counts inputs; the two times are those of asking, in seconds.
    """

    called: Signature | str
    inputs: NDArray[Any]
    codes: NDArray[Any]
    is_whole: bool
    asked: int
    seconds: float
    processor_seconds: float
    reason: str = ""
    drawn: int = 0

    @property
    def form(self) -> str:
        """How the codec is called: a C function's type, or the form of a Python one in words."""
        return self.called.text if isinstance(self.called, Signature) else FORM_WORDS[self.called]

    def of(self, inputs: NDArray[Any]) -> NDArray[Any]:
        """Return the answers to the given inputs.

        If ``is_whole``, these may be any inputs, otherwise only those that were asked.
        """
        found: NDArray[Any] = self.codes[np.searchsorted(self.inputs, inputs, "right") - 1]
        return found


@dataclass(frozen=True)
class _Ready:
    """A codec with the way to call it: a C function's type, or the form of a Python function.

    A sweep of all inputs is divided into ``parts``, each in a process of its own.
    """

    called: Signature | str
    process: CodecProcess
    parts: int


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

    Of a source of more than 16 bits, a sample is asked if all inputs would take too long, or if a
    sweep has too many runs of equal answers. ``signature`` is the C type that the user names, or
    None to try some. ``seconds`` limits one block of inputs, and ``jobs`` the processes at a time.
    Before a sweep or a sample, ``progress`` is called with its number of inputs, and with an
    estimate in words; it returns a function that is called with the number of inputs that were done
    since its last call. C programs are compiled in ``folder``. Raise CastigateError if the codec
    cannot be called, fails for an input, gives an answer with too many bits or, unless a sample is
    asked, two answers to one input. Without ``signature``, raise it too for a library or Python
    function of one answer to all inputs.
    """
    try:
        return _ask_all(target, rules, signature, seconds, jobs, folder, progress)
    except NotOpenedError as error:
        raise CastigateError(_not_opened(target, str(error))) from None
    except CodecFailedError as error:
        raise CastigateError(_failed(target, rules, error)) from None


def _ask_all(
    target: CodecTarget,
    rules: Ruling,
    signature: str | None,
    seconds: float,
    jobs: int,
    folder: Path,
    progress: Callable[[int, str], Advance],
) -> CodecAnswers:
    codec = _ready(target, rules, signature, seconds, folder)
    begin, used = monotonic(), seconds_of_children()
    total = 1 << rules.source.bits
    if rules.source.bits <= EXHAUSTIVE_BITS:
        inputs = np.arange(total, dtype=np.uint32)
        answers, _ = codec.process.answers(inputs)
        _check_steady(target, rules, codec, inputs, answers)
        is_whole, asked, reason, drawn = True, total, "", 0
    else:
        reason, pace = _too_slow(codec, rules, jobs)
        drawn = 0
        if not reason:
            try:
                advance = progress(total, _estimate(total, pace / min(jobs, codec.parts)))
                runs = codec.process.sweep(total, codec.parts, MOST_RUNS, jobs, advance)
                inputs, answers = runs
                _check_steady(target, rules, codec, inputs, answers)
            except ManyRunsError:
                reason = "its answers change from input to input as no codec's do"
        is_whole = not reason
        asked = total
        if reason:
            inputs, drawn = _sample(rules, pace)
            advance = progress(inputs.size, _estimate(inputs.size, pace))
            answers, _ = codec.process.answers(inputs)
            advance(inputs.size)
            asked = inputs.size
    source, answer = rules.source, rules.target
    _check_codes(target, rules, inputs, answers)
    return CodecAnswers(
        codec.called,
        inputs.astype(source.storage),
        answers.astype(answer.storage),
        is_whole,
        asked,
        monotonic() - begin,
        seconds_of_children() - used,
        reason,
        drawn,
    )


def _ready(
    target: CodecTarget, rules: Ruling, signature: str | None, seconds: float, folder: Path
) -> _Ready:
    """Return the codec with the way to call it that the user names or that fits best.

    Of a C header, the first way that compiles is taken, otherwise the one that gives the most right
    answers to some inputs. Raise CastigateError if none works or gives two different answers, or if
    one that seems right fails for an input and no other gives mostly right answers.
    """
    ways = [*_ways(target, rules, signature, seconds, folder)]
    if signature is not None or target.kind == "header":
        return _first_compiled(target, rules, ways)
    probes = _probes(rules)
    best: tuple[tuple[float, int], _Ready] | None = None
    failures: list[tuple[_Ready, CodecFailedError]] = []
    constant = ""
    for way in ways:
        codec = way()
        try:
            answers, _ = codec.process.answers(probes, probes.size)
        except NotLoadedError:
            raise
        except CodecFailedError as error:
            failures.append((codec, error))
            continue
        if (answers == answers[0]).all():
            constant = constant or rules.target.hexadecimal(int(answers[0]))
            continue
        merit = _share_right(rules, probes, answers), np.unique(answers).size
        if best is None or merit > best[0]:
            best = merit, codec
    if best is None or best[0][0] < FITTING:
        for codec, failure in failures:
            if _fits(codec, rules):
                raise failure
    if best is not None:
        return best[1]
    if constant:
        raise CastigateError(
            f"target `{target.text}` answers {constant} to every input, however it is called; "
            + ("name its type by --signature" if target.kind != "python" else "look at its type")
        )
    raise _most_telling(target, [failure for _, failure in failures])


def _fits(codec: _Ready, rules: Ruling) -> bool:
    """Return whether a codec that failed for some input is right for most of five simple ones.

    These are the pattern 0, and 0.5, 1, 2 and -1; without a sign, 1 stands in place of -1.
    """
    source = rules.source
    one, step = source.one_code, 1 << source.entry.mantissa
    inputs = np.array([0, one - step, one, one + step, one | source.sign_bit]).astype(np.uint32)
    try:
        answers, _ = codec.process.answers(inputs)
    except CodecFailedError:
        return False
    return _share_right(rules, np.sort(inputs), answers[np.argsort(inputs)]) > FITTING


def _first_compiled(target: CodecTarget, rules: Ruling, ways: list[Callable[[], _Ready]]) -> _Ready:
    """Return the codec by the first C type that the compiler accepts.

    Raise CastigateError if it accepts none, or if compiling fails for another reason.
    """
    for way in ways:
        try:
            return way()
        except WrongSignatureError as error:
            if len(ways) == 1:
                raise CastigateError(str(error)) from None
    tried = ", ".join(each.text for each in signatures(rules.source, rules.target))
    raise CastigateError(
        f"target `{target.text}` fits none of {tried}; name its type by --signature"
    )


def _probes(rules: Ruling) -> Words32:
    count = 1 << rules.source.bits
    if rules.source.bits <= EXHAUSTIVE_BITS:
        return np.arange(0, count, max(1, count // PROBES)).astype(np.uint32)
    return few_patterns(rules.source.name, rules.target.name, PROBES).astype(np.uint32)


def _most_telling(target: CodecTarget, failures: list[CodecFailedError]) -> CodecFailedError:
    """Return which of ``failures`` to report for a codec that cannot be called in any way.

    Of C, it is the first. Of a Python function, ``failures`` has one for each of ``FORMS``; that of
    the form ``torch`` is returned if the module uses torch, otherwise that of ``number``.
    """
    if target.kind != "python":
        return failures[0]
    by_form = dict(zip(FORMS, failures, strict=True))
    return by_form["number" if NOT_USED in str(by_form["torch"]) else "torch"]


def _ways(
    target: CodecTarget, rules: Ruling, signature: str | None, seconds: float, folder: Path
) -> Iterator[Callable[[], _Ready]]:
    """Yield for each way to call the codec a function that prepares and returns it.

    A way is the type of a C function, or a form of a Python function. Raise CastigateError if
    ``signature`` is given for a Python function, is malformed, or has wrong widths.
    """
    source, answer = rules.source, rules.target
    if target.kind == "python":
        if signature is not None:
            raise CastigateError("--signature is for C; a Python function is tried out")
        for form in FORMS:
            words = (target.where, target.function, form, source.name, answer.name)
            command, environment = python_command(words)
            process = CodecProcess(command, BLOCK, seconds, environment)
            yield lambda form=form, process=process: _Ready(form, process, PYTHON_PARTS)  # type: ignore[misc]
        return
    known = [signature_named(signature)] if signature else [*signatures(source, answer)]
    for number, each in enumerate(known):
        if signature:
            check_widths(each, source, answer)

        def way(number: int = number, each: Any = each) -> _Ready:
            own = folder / str(number)
            own.mkdir()
            program = build(target, each, source, answer, own)
            return _Ready(each, CodecProcess((str(program),), C_BLOCK, seconds), C_PARTS)

        yield way


def _share_right(rules: Ruling, inputs: Words32, answers: Words32) -> float:
    stairs = staircase(rules)
    grades, _ = grade_by_staircase(stairs, inputs.astype(rules.source.storage), answers)
    return float((grades == ALLOWED).mean())


def _too_slow(codec: _Ready, rules: Ruling, jobs: int) -> tuple[str, float]:
    """Return why a sweep would take too long (empty if it would not), and the seconds per input."""
    inputs = quick_inputs(rules.source.name, rules.target.name, 0, 0).astype(np.uint32)
    is_slow = isinstance(codec.called, str) and asks_one_by_one(codec.called)
    some = np.resize(inputs[:: max(1, inputs.size // MEASURED)], MEASURED if is_slow else MANY)
    _, seconds = codec.process.answers(some)
    pace = seconds / some.size
    processes = min(jobs, codec.parts)
    whole_seconds = pace * (1 << rules.source.bits) / processes
    if whole_seconds <= LONGEST_SWEEP:
        return "", pace
    return (
        f"a call takes {_time_words(pace)}, and all {1 << rules.source.bits:,} inputs would take"
        f" {_time_words(whole_seconds)} in {processes} process{'es' if processes > 1 else ''}",
        pace,
    )


def _estimate(inputs: int, pace: float) -> str:
    return f"about {_time_words(inputs * pace)} at {1 / pace:,.0f} a second"


def _sample(rules: Ruling, pace: float) -> tuple[Words32, int]:
    """Return a sample of inputs, and how many of them were drawn at random, repeats counted.

    ``pace`` is the seconds that an input takes, which limits the number of inputs.
    """
    source, target = rules.source, rules.target
    most = max(PROBES, min(MOST_SAMPLED, int(SAMPLE_SECONDS / pace)))
    edges = np.arange(0, 1 << source.bits, PREFIX, dtype=np.uint64)
    near = np.concatenate([edges, edges + np.uint64(1), edges + np.uint64(PREFIX - 1)])
    telling = distinct(
        np.concatenate([quick_inputs(source.name, target.name, 0, 0).astype(np.uint64), near])
    )
    if telling.size > most // 2:
        telling = few_patterns(source.name, target.name, most // 2).astype(np.uint64)
    chance = np.random.default_rng(0)
    drawn = chance.integers(0, source.mask, most - telling.size, np.uint64, endpoint=True)
    return distinct(np.concatenate([telling, drawn])).astype(np.uint32), drawn.size


def _check_steady(
    target: CodecTarget, rules: Ruling, codec: _Ready, inputs: Words32, answers: Words32
) -> None:
    """Ask some of the inputs again, one at a time; raise CastigateError if an answer differs."""
    some = slice(None, None, max(1, inputs.size // MEASURED))
    again, _ = codec.process.answers(inputs[some], 1)
    if (other := np.flatnonzero(again != answers[some])).size:
        at = int(other[0])
        first, second = (
            datum_with_value(rules.target, int(each[at])) for each in (answers[some], again)
        )
        raise CastigateError(
            f"target `{target.text}` answers {_input_words(rules, int(inputs[some][at]))} once by"
            f" {first} and once by {second}; a codec's answer depends on its input alone"
        )


def _check_codes(target: CodecTarget, rules: Ruling, inputs: Words32, answers: Words32) -> None:
    """Raise CastigateError for an answer with bits above those of the target format."""
    beyond = np.flatnonzero(answers > rules.target.mask)
    if beyond.size:
        at = int(beyond[0])
        raise CastigateError(
            f"target `{target.text}` answers {_input_words(rules, int(inputs[at]))} by"
            f" 0x{int(answers[at]):x}, but {rules.target.name} has {rules.target.bits} bits; put"
            " the code in the lowest ones"
        )


def _input_words(rules: Ruling, code: int) -> str:
    return datum_with_value(rules.source, code)


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
