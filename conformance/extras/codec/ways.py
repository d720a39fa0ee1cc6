"""Finds out how a codec is called: the type of a C function, or the form of a Python one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.extras.codec.asked_texts import asked_texts, given_to, numbers_asked
from conformance.extras.codec.c_program import WrongSignatureError, build, check_widths
from conformance.extras.codec.process import (
    CodecAnswerBits,
    CodecFailedError,
    CodecNotLoadedError,
    CodecProcess,
    WordsOf64,
    python_command,
)
from conformance.extras.codec.python_worker import (
    BLOCK,
    FORM_WORDS,
    NOT_USED,
    NUMERIC_FORMS,
    PROGRAM,
    WRITING_FORMS,
    asks_one_by_one,
)
from conformance.extras.codec.target import (
    AnySignature,
    CodecTarget,
    Signature,
    signature_for,
    signatures,
)
from conformance.families.cast.quick_inputs import few_patterns, quick_inputs
from oracles.reference import expect_by_exact
from oracles.reference.staircase import staircase
from reports.counterexample.drawing import datum_text
from reports.grading.allowed_answers import ALLOWED, Grades, grade_answers
from reports.grading.staircase_grades import grade_by_staircase
from specs.branches import Ruling
from specs.errors import CastigateError
from specs.formats import EXHAUSTIVE_BITS

C_BLOCK = 1 << 12
"""Inputs that a C program asks at a time; the same number stands in ``driver.c``."""
PROGRAM_BLOCK = 1 << 20
"""Inputs after which a program's progress is told; it gets smaller batches of its own."""
C_PARTS, PYTHON_PARTS = 16, 2
"""Parts of a sweep, a process each; fewer for Python, whose processes take longer to start."""
PROBES = 256
"""About the most inputs on which the ways to call a codec are compared; the least of a sample."""
FITTING = 0.5
"""The share of right answers that a way to call a codec must exceed to seem right."""


@dataclass(frozen=True)
class CodecWay:
    """A way to call a codec: a C function's type, or the form of a Python function or a program.

    A sweep of all inputs is divided into ``parts``, each in a process of its own.
    """

    called: AnySignature | str
    process: CodecProcess
    parts: int

    @property
    def is_program(self) -> bool:
        """Whether the codec is a program."""
        return self.called == PROGRAM

    @property
    def asks_one_by_one(self) -> bool:
        """Whether the codec is a Python function of one number at a time."""
        return isinstance(self.called, str) and asks_one_by_one(self.called)


def way_words(called: AnySignature | str) -> str:
    """Return how the codec is called: a C function's type, or the form of a Python one in words."""
    return FORM_WORDS[called] if isinstance(called, str) else called.text


def find_way(
    target: CodecTarget, rules: Ruling, signature: str | None, seconds: float, folder: Path
) -> CodecWay:
    """Return the codec with the way to call it that the user names or that fits best.

    Of a C header, the first way that compiles is taken, otherwise the one that gives the most right
    answers to some inputs. Raise CastigateError if none works or gives two different answers, or if
    one that seems right fails for an input and no other gives mostly right answers.
    """
    ways = [*_ways(target, rules, signature, seconds, folder)]
    if signature is not None or target.kind == "header":
        return _first_compiled(target, rules, ways)
    if target.kind == "program":
        return ways[0]()
    probes = _probes(rules)
    best: tuple[tuple[float, int], CodecWay] | None = None
    failures: list[tuple[CodecWay, CodecFailedError]] = []
    constant = ""
    for way in ways:
        codec = way()
        try:
            answers, _ = codec.process.answers(probes, probes.size)
        except CodecNotLoadedError:
            raise
        except CodecFailedError as error:
            failures.append((codec, error))
            continue
        if (answers == answers[0]).all():
            constant = constant or _answer_words(rules, answers[0])
            continue
        merit = share_right(rules, probes, answers), np.unique(answers).size
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
    raise _most_telling(failures)


def _answer_words(rules: Ruling, answer: Any) -> str:
    return datum_text(rules.target, answer if isinstance(answer, str) else int(answer))


def _fits(way: CodecWay, rules: Ruling) -> bool:
    """Return whether a codec that failed for some input is right for most of a few simple ones.

    These are the pattern 0, and 0.5, 1, 2 and -1; without a sign, 1 stands in place of -1. Of
    integers they are 0 to 3, and the pattern with all bits set. Of texts they are the first ones.
    """
    source = rules.source
    if source.kind == "float":
        one, step = source.one_code, 1 << source.entry.mantissa
        codes = [0, one - step, one, one + step, one | source.sign_bit]
    else:
        codes = [0, 1, 2, 3, source.mask or 4]
    inputs = np.sort(np.array(codes, np.uint64))
    try:
        answers, _ = way.process.answers(inputs)
    except CodecFailedError:
        return False
    return share_right(rules, inputs, answers) > FITTING


def _first_compiled(
    target: CodecTarget, rules: Ruling, ways: list[Callable[[], CodecWay]]
) -> CodecWay:
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


def _probes(rules: Ruling) -> WordsOf64:
    source = rules.source
    count = numbers_asked(rules) if source.kind == "text" else 1 << source.bits
    if source.bits <= EXHAUSTIVE_BITS:
        return np.arange(0, count, max(1, count // PROBES)).astype(np.uint64)
    if rules.target.is_numeric:
        return few_patterns(source.name, rules.target.name, PROBES).astype(np.uint64)
    return quick_inputs(source.name, rules.target.name, 0, 0)[:PROBES].astype(np.uint64)


def _most_telling(failures: list[tuple[CodecWay, CodecFailedError]]) -> CodecFailedError:
    """Return which of ``failures`` to report for a codec that cannot be called in any way.

    Of C, it is the first. Of a Python function of numbers, ``failures`` has one for each form; that
    of the form ``torch`` is returned if the module uses torch, otherwise that of ``number``.
    """
    by_form = {way.called: failure for way, failure in failures}
    torch = by_form.get("torch")
    if torch is not None and NOT_USED not in str(torch):
        return torch
    return by_form.get("number", failures[0][1])


def _ways(
    target: CodecTarget, rules: Ruling, signature: str | None, seconds: float, folder: Path
) -> Iterator[Callable[[], CodecWay]]:
    """Yield for each way to call the codec a function that prepares and returns it.

    A way is the type of a C function, or a form of a Python function. Raise CastigateError if
    ``signature`` is given for a Python function, is malformed, or has wrong widths.
    """
    source, answer = rules.source, rules.target
    texts, gives_texts = folder / "texts", answer.kind == "text"
    if source.kind == "text":
        lines = "".join(f"{text}\n" for text in asked_texts(rules))
        texts.write_text(lines, encoding="utf-8")
    if target.kind in ("python", "program"):
        if signature is not None:
            raise CastigateError(f"--signature is for C; a {NO_TYPES[target.kind]}")
        for form in _forms(target, rules):
            is_program = form == PROGRAM
            function = f"{seconds:g}" if is_program else target.function
            words = (target.where, function, form, source.name, answer.name)
            command, environment = python_command((*words, str(texts) * (source.kind == "text")))
            # The worker itself limits the batches of a program.
            limit, block = (inf, PROGRAM_BLOCK) if is_program else (seconds, BLOCK)
            process = CodecProcess(command, block, limit, gives_texts, environment)
            parts = C_PARTS if is_program else PYTHON_PARTS
            yield lambda form=form, process=process, parts=parts: CodecWay(form, process, parts)  # type: ignore[misc]
        return
    known = (
        [signature_for(signature, source, answer)] if signature else [*signatures(source, answer)]
    )
    for number, each in enumerate(known):
        if signature and isinstance(each, Signature):
            check_widths(each, source, answer)

        def way(number: int = number, each: Any = each) -> CodecWay:
            own = folder / str(number)
            own.mkdir()
            program = build(target, each, source, answer, own, texts)
            process = CodecProcess((str(program),), C_BLOCK, seconds, gives_texts)
            return CodecWay(each, process, C_PARTS)

        yield way


NO_TYPES = {
    "python": "Python function is tried out",
    "program": "program has lines of text",
}
"""By kind of target, the reason for which --signature does not apply to it."""


def _forms(target: CodecTarget, rules: Ruling) -> tuple[str, ...]:
    """Return the forms in which to try a Python function, or that of a program."""
    if target.kind == "program":
        return (PROGRAM,)
    if rules.source.kind == "text":
        return ("text",)
    return WRITING_FORMS if rules.target.kind == "text" else NUMERIC_FORMS


def share_right(rules: Ruling, inputs: WordsOf64, answers: CodecAnswerBits) -> float:
    """Return the share of answers that the ruling allows."""
    grades, _ = grades_of(rules, given_to(rules, inputs), answers)
    return float((grades == ALLOWED).mean())


def grades_of(
    rules: Ruling, given: Any, answers: CodecAnswerBits
) -> tuple[Grades, NDArray[np.uint8]]:
    """Return the grade of each answer, and the index of the branch that takes each input.

    Patterns must be in rising order.
    """
    if rules.source.is_numeric and rules.target.is_numeric:
        return grade_by_staircase(staircase(rules), given, answers)
    expected = expect_by_exact.expect(rules, given)
    return grade_answers(rules, given, expected, answers), expected.branch_indices
