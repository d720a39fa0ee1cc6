"""Questions of the docket about one element of a quantization, with its scale and zero point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from conformance.families.quantization.exact import AllowedCode, AllowedResult
from conformance.families.quantization.grading import allowed, as_code, code_word, rule_of
from conformance.families.quantization.inputs import tensors_of_element, zero_format
from conformance.value_spelling import datum
from oracles.backend.requests import Quantize
from specs.cases import Case
from specs.docket import Question
from specs.errors import CastigateError
from specs.formats import Format
from specs.outcomes import Nan
from specs.quantization_ruling import Formula, formula


class Element(NamedTuple):
    """An element: its number or code, the scale, and the zero point if there is one."""

    rules: Formula
    x: int
    scale: int
    zero: int | None

    @classmethod
    def of(cls, question: Question, case: Case) -> Element:
        """The element that a question is about; raise CastigateError if it names no scale."""
        if question.scale is None:
            raise CastigateError(f"{case.document} needs a `scale` beside the input")
        rules = formula(case)
        zero = None if question.zero is None else _code(zero_format(rules), question.zero, "zero")
        x = _code(rules.source, question.input, "input")
        return cls(rules, x, _code(rules.scale, question.scale, "scale"), zero)

    def asked(self, case: Case) -> Quantize:
        """The request for this element alone."""
        return Quantize(case, tensors_of_element(case, self.x, self.scale, self.zero))


def _code(form: Format, spelled: Any, what: str) -> int:
    return int(datum(form, str(spelled), what))


def judge_element(element: Element) -> Callable[[Any], dict[str, Any]]:
    """Return a function that judges an answer: verdict, level, clause, and what is allowed."""
    rules = element.rules
    found = allowed(rules, element.x, element.scale, element.zero)
    _, clause = rule_of(rules, found)
    codes = [code_word(rules.target, as_code(each)) for each in found.codes]

    def judge(answer: Any) -> dict[str, Any]:
        code = None if isinstance(answer, dict) else _code(rules.target, answer, "answer")
        return {
            "input": rules.source.hexadecimal(element.x),
            "output": answer if code is None else _hex(rules, code),
            "verdict": _verdict(rules, found, code),
            "level": "unspecified" if found.is_open else found.level,
            "clause": clause,
            "allowed": codes,
        }

    return judge


def _hex(rules: Formula, code: int) -> str:
    return rules.target.hexadecimal(code)


def _verdict(rules: Formula, found: AllowedResult, code: int | None) -> str:
    if found.is_open:
        return "open"
    if code is None:
        return "violates"

    def among(allowed: tuple[AllowedCode, ...]) -> bool:
        return any(
            any(code in nans for nans in rules.target.nans(each.sign))
            if isinstance(each, Nan)
            else code == each
            for each in allowed
        )

    if among(found.codes):
        return "conforms"
    return "deviates" if among(found.weaker) or found.level == "recommended" else "violates"
