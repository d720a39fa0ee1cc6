"""Copies: every bit of a tensor survives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from conformance.families import value_spelling as spelling
from conformance.families.family import Explained, WrittenQuestion
from conformance.judging.asking import Ask, Subject, ask
from conformance.judging.values import no_answer
from conformance.judging.verdicts import without_answer
from oracles.backend.replies import Answered, checked
from oracles.backend.requests import AboutTensor
from oracles.protocol import Bits
from reports.judgement import Judgement
from reports.problems import Problem, WrongElement
from specs.cases import Case
from specs.editions import Edition, edition
from specs.formats import format_named
from specs.loader import Document, document_named
from specs.ruling import EVERY_INPUT, CaseRule


class Copy(AboutTensor):
    """Copy one tensor. The reply holds the same patterns."""

    method = "copy"
    lacks = "copies no tensors"

    def checked(self, answer: Any) -> Bits:
        """Require patterns of the source, in the tensor's shape."""
        return checked(format_named(self.case.source), self.bits, answer)


def rules(document: Document, case: Case) -> Iterator[CaseRule]:
    """Yield the rule of the pair, which is about every input."""
    for name in edition(document, case.version).rules_between(case.source, case.target):
        rule = document.entry.rules[name]
        yield CaseRule(name, rule.level, rule.clause, EVERY_INPUT, is_open=False)


def cases(version: Edition) -> Iterator[Case]:
    """The cases of a version: a copy has the dtype that it is made of."""
    name, pairs = version.document.name, version.pairs()
    yield from (Case(name, version.version, *pair) for pair in pairs if pair[0] == pair[1])


def patterns(case: Case) -> Bits:
    """All patterns of the dtype, or 65,536 of them at equal distances."""
    form = format_named(case.source)
    return np.linspace(0, form.mask, min(form.mask + 1, 1 << 16)).astype(form.storage)


def judge(subject: Subject, case: Case) -> Ask[Judgement]:
    """Judge one tensor with many patterns."""
    bits, words = patterns(case), format_named(case.source).hexadecimal
    match (yield from ask(Copy(case, bits))):
        case Answered(answer) if not (answer != bits).any():
            return Judgement(case.id, subject.name, "conforms", inputs=bits.size)
        case Answered(answer):
            at = int(np.flatnonzero(answer != bits)[0])
        case missing:
            return (yield from without_answer(subject, case, missing, bits.size))
    (rule,) = rules(document_named(case.document), case)
    got, wanted = words(int(answer[at])), words(int(bits[at]))
    found = WrongElement(rule.rule, rule.clause, rule.level, bits.shape, at, got, wanted)
    verdict = subject.graded(case, [rule.level], is_open=False)
    return Judgement(case.id, subject.name, verdict, (found,), bits.size)


def followed(case: Case, problem: Problem) -> tuple[str, ...]:
    """The name of the finding."""
    return ("changes-bits",) if isinstance(problem, WrongElement) else ()


says = {"changes-bits": "copies give other bits"}.__getitem__


class CopyLines:
    """The lines of a copy: one pattern in, the same pattern out."""

    def __init__(self, case: Case) -> None:
        self._case, self._form = case, format_named(case.source)
        (self._rule,) = rules(document_named(case.document), case)

    def listed(self, seed: int, max_examples: int) -> Iterator[Any]:
        """Yield the patterns that a run asks."""
        yield from map(self._form.hexadecimal, patterns(self._case).tolist())

    def spelled(self, given: spelling.InputDatum) -> Any:
        """Spell a pattern as ``listed`` does."""
        return self._form.hexadecimal(int(spelling.datum(self._form, given, "input")))

    def judge(self, given: spelling.InputDatum, output: spelling.OutputDatum) -> dict[str, Any]:
        """Judge an output."""
        wanted, rule = self.spelled(given), self._rule
        is_right = not isinstance(output, spelling.ErrorDatum) and self.spelled(output) == wanted
        shown = spelling.patterns_of_line((self._form, given), (self._form, output))
        told = {"verdict": "conforms" if is_right else "violates", "allowed": [wanted]}
        return {**shown, **told, "rule": rule.rule, "level": rule.level, "clause": rule.clause}


def explain(case: Case, question: WrittenQuestion) -> Explained:
    """Explain the copy of the inputs."""
    words, values = format_named(case.source).hexadecimal, spelling.NestedDatum([*question.inputs])
    bits = spelling.tensor(format_named(case.source), values, "input")

    def asked() -> Ask[Any]:
        reply = yield from ask(Copy(case, bits))
        return (
            [*map(words, reply.value.tolist())] if isinstance(reply, Answered) else no_answer(reply)
        )

    (rule,) = rules(document_named(case.document), case)
    told = {"case": case.id, "rule": rule.rule, "allowed": [*map(words, bits.tolist())]}
    return Explained(told, asked, lambda found: (f"{name}  {found[name]}" for name in found))
