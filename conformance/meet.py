"""A case meets an oracle: ask, check the answer's form, compare, and come to a verdict."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.accept import Expectations, levels_broken
from conformance.blame import blame
from conformance.divergences import datum_of, divergences
from conformance.inputs import inputs_of
from oracles.protocol import Bits, Unsupported
from oracles.reference.expected import Expected
from oracles.registry import Backend
from reports.judgement import Judgement, Verdict
from specs.cases import Case
from specs.formats import Format
from specs.ruling import Ruling, ruling
from specs.tensors import tensor_rule

SHAPES: tuple[tuple[int, ...], ...] = (
    (), (1,), (0,), (5,), (2, 3), (3, 0), (2, 1, 2), (0, 2, 2), (1, 2, 1, 2), (1, 1, 2, 1, 2),
)  # fmt: skip


class AnswerError(Exception):
    """An answer that has not the form an answer must have."""


class OracleError(Exception):
    """An oracle raised on inputs that have an answer; the message names them."""


@dataclass(frozen=True)
class Settings:
    """What the user chose for the whole run."""

    seed: int = 0
    max_examples: int = 1000
    asked_for: frozenset[str] = frozenset()


class Meeting:
    """Judges one backend, case after case."""

    def __init__(self, backend: Backend, broken: dict[str, str], settings: Settings) -> None:
        self.backend = backend
        self.broken = broken
        self.settings = settings
        self.expectations = Expectations(independent=backend.name == "reference")

    def judge(self, case: Case) -> Judgement:
        """The verdict on a case; whatever the oracle does becomes one."""
        rules = ruling(case)
        for dtype in (case.source, case.target):
            if dtype in self.broken:
                return self._verdict(
                    case, "error", f"the adapter, not the framework: {dtype}: {self.broken[dtype]}"
                )
        inputs = inputs_of(case, rules, self.settings.seed, self.settings.max_examples)
        try:
            if rules.is_rejection:
                return self._rejected(case, rules, inputs)
            return self._answered(case, rules, inputs)
        except Unsupported as reason:
            return self._verdict(case, "unsupported", one_line(reason))
        except (AnswerError, OracleError) as fault:
            return self._verdict(case, "error", str(fault), inputs=inputs.size)

    def _verdict(self, case: Case, verdict: Verdict, message: str = "", **more: Any) -> Judgement:
        return Judgement(case.id, self.backend.name, verdict, message, **more)

    def _ask(self, case: Case, rules: Ruling, inputs: Bits) -> Bits:
        # A copy: what an oracle does to its inputs must not reach what it is judged by.
        try:
            answer = self.backend.oracle.cast(case, inputs.copy())
        except (Exception, KeyboardInterrupt):
            raise
        except BaseException as error:
            # SystemExit, or a test runner's own signals: neither is the adapter's to give.
            raise RuntimeError(f"it wanted to end the run: {described(error)}") from None
        return checked(rules.target, inputs, answer)

    def _rejected(self, case: Case, rules: Ruling, inputs: Bits) -> Judgement:
        try:
            answer = self._ask(case, rules, inputs)
        except (Unsupported, AnswerError):
            raise
        except Exception as error:
            return self._verdict(case, "conforms", described(error), inputs=inputs.size)
        expected = Expected(*(np.zeros(inputs.size, np.uint8) for _ in range(3)))
        broken = np.full(inputs.size, 2, np.uint8)
        return self._compared(case, rules, inputs, expected, answer, broken)

    def _answered(self, case: Case, rules: Ruling, inputs: Bits) -> Judgement:
        expected = self.expectations.of(rules, inputs)
        is_open = np.isin(expected.places, rules.open_places)
        asked, message = inputs, ""
        try:
            answer = self._ask(case, rules, inputs)
        except (Unsupported, AnswerError):
            raise
        except Exception as error:
            if is_open.all():
                return self._verdict(case, "open", described(error), inputs=inputs.size)
            if not is_open.any():
                raise self._blamed(case, rules, inputs, error) from error
            # An error is a fair answer to an open input, so the others are asked without them.
            message = f"open inputs: {described(error)}"
            asked, expected = inputs[~is_open], expected.at(~is_open)
            answer = self._ask_or_blame(case, rules, asked)
        broken = levels_broken(rules, asked, expected, answer)
        fault = self._shape_fault(case, rules, asked, expected, answer, broken)
        if fault is not None:
            # A wrong value is said first: a shape that is not offered must not excuse it.
            if not broken.any():
                return fault
            message = "; ".join(part for part in (message, fault.message) if part)
        opened = int(is_open.sum())
        return self._compared(
            case, rules, asked, expected, answer, broken, message, opened, inputs.size
        )

    def _ask_or_blame(self, case: Case, rules: Ruling, inputs: Bits) -> Bits:
        try:
            return self._ask(case, rules, inputs)
        except (Unsupported, AnswerError):
            raise
        except Exception as error:
            raise self._blamed(case, rules, inputs, error) from error

    def _blamed(self, case: Case, rules: Ruling, inputs: Bits, error: Exception) -> OracleError:
        guilty = blame(rules.source, inputs, lambda part: self._ask(case, rules, part))
        return OracleError(f"{guilty}: {described(error)}")

    def _compared(
        self,
        case: Case,
        rules: Ruling,
        inputs: Bits,
        expected: Expected,
        answer: Bits,
        broken: NDArray[np.uint8],
        message: str = "",
        open_inputs: int = 0,
        total: int = 0,
    ) -> Judgement:
        found = list(divergences(rules, inputs, expected, answer, broken))
        levels = {divergence.level for divergence, _ in found}
        verdict: Verdict = "violates" if "required" in levels else "deviates"
        if not levels:
            verdict = "open" if rules.is_open else "conforms"
        elif not self.claimed(case.document):
            verdict = "differs"
        script = ""
        if found:
            smallest = inputs[found[0][1] : found[0][1] + 1]
            script = self._reproduction(case, rules, smallest)
        return self._verdict(
            case,
            verdict,
            message,
            inputs=total or inputs.size,
            open_inputs=open_inputs,
            divergences=tuple(divergence for divergence, _ in found),
            reproduction=script,
        )

    def claimed(self, document: str) -> bool:
        """Whether breaking a document's rule counts: the oracle claims it, or the user named it."""
        return document in self.settings.asked_for or self.backend.claims(document)

    def _shape_fault(
        self,
        case: Case,
        rules: Ruling,
        inputs: Bits,
        expected: Expected,
        answer: Bits,
        broken: NDArray[np.uint8],
    ) -> Judgement | None:
        """The first shape that a cast does not keep, or in which a sound element turns wrong."""
        sound = np.flatnonzero(broken == 0)
        if case.example is not None or sound.size == 0:
            return None
        for shape in SHAPES:
            rule = tensor_rule(case.document, shape)
            if not rule.keeps_shape:
                continue
            picked = sound[np.linspace(0, sound.size - 1, int(np.prod(shape))).astype(int)]
            fault = None
            try:
                again = self._ask(case, rules, inputs[picked].reshape(shape)).reshape(-1)
                if not np.array_equal(again, answer[picked]):
                    wrong = levels_broken(rules, inputs[picked], expected.at(picked), again)
                    fault = "an element answers otherwise than in one row" if wrong.any() else None
            except Unsupported as reason:
                return self._verdict(case, "unsupported", f"shape {shape}: {one_line(reason)}")
            except AnswerError as error:
                fault = str(error)
            except Exception as error:
                return self._verdict(case, "error", f"shape {shape}: {described(error)}")
            if fault is not None:
                verdict: Verdict = "violates" if self.claimed(case.document) else "differs"
                said = f"{rule.rule} ({rule.clause}): shape {shape}: {fault}"
                return self._verdict(case, verdict, said, inputs=inputs.size)
        return None

    def _reproduction(self, case: Case, rules: Ruling, smallest: Bits) -> str:
        make = getattr(self.backend.oracle, "reproduce", None)
        if make is not None:
            return str(make(case, smallest))
        given = datum_of(smallest[0])
        shown = shlex.quote(given) if isinstance(given, str) else rules.source.hexadecimal(given)
        name = shlex.quote(self.backend.name)
        return f"castigate explain {case.id} --backend {name} -- {shown}"


def checked(target: Format, inputs: Bits, answer: object) -> Bits:
    """The answer, if it has the form of one."""
    if not isinstance(answer, np.ndarray):
        raise AnswerError(f"the answer is {type(answer).__name__}, not a numpy array")
    if answer.shape != inputs.shape:
        raise AnswerError(f"the answer has shape {answer.shape}, the input {inputs.shape}")
    if answer.dtype != np.dtype(target.storage):
        raise AnswerError(
            f"the answer's storage is {answer.dtype}, {target.name} is held in {target.storage}"
        )
    if target.kind == "text":
        if not all(isinstance(text, str) for text in answer.reshape(-1).tolist()):
            raise AnswerError("the answer holds something else than texts")
    elif (
        target.bits < 8 * answer.dtype.itemsize and answer.size and int(answer.max()) > target.mask
    ):
        raise AnswerError(f"the answer holds {int(answer.max()):#x}, wider than {target.name}")
    return answer


def one_line(error: BaseException) -> str:
    """An error's first line that says something, cut to a readable length."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:300] if lines else type(error).__name__


def described(error: BaseException) -> str:
    """An error's kind and its first line."""
    return f"{type(error).__name__}: {one_line(error)}"
