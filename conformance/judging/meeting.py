"""A case meets an oracle: ask, check the answer's form, compare, and come to a verdict."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from conformance.judging import bitcasts, row_limits
from conformance.judging.answer_form import (
    AnswerError,
    checked,
    described,
    one_line,
    printable,
    refusal,
)
from conformance.judging.calls import DepartedError, answer_of, call_by, call_faults
from conformance.judging.quick_inputs import inputs_of
from conformance.judging.shape_choice import shapes_of
from conformance.judging.shapes import shape_faults
from oracles.isolation.remote_errors import Crashed
from oracles.protocol import Bits, Returned, Unsupported
from oracles.reference.expectations import Expected
from oracles.reference.reference_oracle import Reference
from oracles.registry import Backend
from reports.counterexample.drawing import pattern
from reports.diff.allowed_answers import Expectations, levels_broken
from reports.diff.divergences import datum_of, divergences, simplicity
from reports.diff.judgement import Divergence, Fault, Judgement, Verdict
from reports.diff.kept_answers import Answered, Kept
from specs.bitcast_ruling import bitcast_ruling
from specs.calls import Call
from specs.case_calls import receiver_of
from specs.cases import Case
from specs.formats import Format, format_named
from specs.operations import is_bitcast
from specs.ruling import Ruling, ruling

Ask = Callable[[Bits], Bits]


def blame(source: Format, inputs: Bits, ask: Ask) -> str:
    """Say which input makes an oracle raise, and of texts how many do."""
    if source.kind == "text":
        guilty = [index for index in range(inputs.size) if _raises(inputs[index : index + 1], ask)]
        if not guilty:
            return "on no text alone, only on all of them together"
        worst = min(guilty, key=lambda index: simplicity(source, inputs[index]))
        return f"on {len(guilty)} of {inputs.size} texts, the smallest {inputs[worst]!r}"
    part = inputs
    while part.size > 1:
        half = part.size // 2
        if _raises(part[:half], ask):
            part = part[:half]
        elif _raises(part[half:], ask):
            part = part[half:]
        else:
            break
    return _named(source, part)


def told(source: Format, death: Crashed) -> str:
    """How a process has ended, and on which inputs if that is known."""
    if death.inputs is None or not death.inputs.size:
        return printable(str(death))
    shape = death.inputs.shape
    where = f" in shape {shape}" if len(shape) != 1 else ""
    return printable(f"{_named(source, death.inputs.reshape(-1))}{where}: {death}")


def _named(source: Format, part: Bits) -> str:
    first, last = (pattern(source, datum_of(part[place])) for place in (0, -1))
    return f"on {first}" if part.size == 1 else f"on {first} to {last} together"


def _raises(inputs: Bits, ask: Ask) -> bool:
    try:
        ask(np.ascontiguousarray(inputs))
    except Exception:
        return True
    return False


Given = TypeVar("Given")
Asked = ParamSpec("Asked")


class OracleError(Exception):
    """An oracle raised on inputs that have an answer; the message names them."""


def contained(call: Callable[Asked, Given], *asked: Asked.args, **named: Asked.kwargs) -> Given:
    """What an oracle returns or raises; only the end of the run is not an oracle's to give."""
    try:
        return call(*asked, **named)
    except (Exception, KeyboardInterrupt, Crashed):
        raise
    except BaseException as error:
        # SystemExit, or a test runner's own signals.
        raise RuntimeError(f"it wanted to end the run: {described(error)}") from None


@dataclass(frozen=True)
class Settings:
    """What the user chose for the whole run."""

    seed: int = 0
    max_examples: int = 1000
    asked_for: frozenset[str] = frozenset()
    tier: str = "quick"


class Meeting:
    """Judges one backend, case after case."""

    def __init__(self, backend: Backend, broken: dict[str, str], settings: Settings) -> None:
        self.backend = backend
        self.broken = broken
        self.settings = settings
        self._asked_rows: tuple[object, list[Bits]] = None, []
        self.expectations = Expectations(independent=isinstance(backend.oracle, Reference))

    @cached_property
    def is_dear(self) -> bool:
        """Whether the backend makes a program for each shape, and there is no time for many."""
        return self.settings.tier == "quick" and getattr(
            self.backend.oracle, "compiles_shapes", False
        )

    def judge(self, case: Case) -> Judgement:
        """The verdict on a case; whatever the oracle does becomes one."""
        for dtype in (case.source, case.target):
            if dtype in self.broken:
                return self._verdict(
                    case, "error", f"the adapter, not the framework: {dtype}: {self.broken[dtype]}"
                )
        return self._bitcast(case) if is_bitcast(case) else self._cast(case)

    def _bitcast(self, case: Case) -> Judgement:
        rules, seed = bitcast_ruling(case), self.settings.seed

        def give(bits: Bits) -> object:
            return contained(lambda: bitcasts.ask(self.backend.oracle, case, bits))

        try:
            found = bitcasts.outcome_of(rules, seed, give)
            copied = contained(bitcasts.copy_fault, self.backend.oracle, case, rules, seed)
        except Unsupported as reason:
            return self._verdict(case, "unsupported", one_line(reason))
        except AnswerError as wrong_form:
            return self._verdict(case, self.failed(case), str(wrong_form))
        except Crashed as death:
            return self.crashed(case, death)
        except Exception as error:
            if rules.may_refuse:
                verdict: Verdict = "open" if rules.is_open else "conforms"
                return self._verdict(case, verdict, refusal(rules.error_class, error))
            return self._verdict(case, self.failed(case), described(error))
        faults = tuple(each for each in (found.fault, copied) if each is not None)
        messages = [found.message, copied.message if copied is not None else ""]
        return self._verdict(
            case,
            self.graded(case, {fault.level for fault in faults}, rules.is_open),
            "; ".join(message for message in messages if message),
            inputs=found.inputs,
            open_inputs=found.open_inputs,
            faults=faults,
        )

    def _cast(self, case: Case) -> Judgement:
        rules = ruling(case)
        inputs = inputs_of(
            case, rules, self.settings.seed, self.settings.max_examples, self.is_dear
        )
        try:
            if rules.is_rejection:
                return self._rejected(case, rules, inputs)
            return self._answered(case, rules, inputs)
        except Unsupported as reason:
            return self._verdict(case, "unsupported", one_line(reason))
        except AnswerError as wrong_form:
            return self._verdict(case, self.failed(case), str(wrong_form), inputs=inputs.size)
        except OracleError as error:
            return self._verdict(case, self.failed(case), str(error), inputs=inputs.size)
        except Crashed as death:
            return self.crashed(case, death)
        except DepartedError as departed:
            if rules.is_open_dtype:
                return self._verdict(case, "open", departed.fault.message, inputs=inputs.size)
            return self._faulty(case, rules, inputs, [], [departed.fault])

    def crashed(self, case: Case, death: Crashed) -> Judgement:
        """The verdict on a case that ends the backend's process."""
        return self._verdict(case, "crashed", told(format_named(case.source), death))

    def road(self, case: Case) -> str:
        """What selects the kernel that answers a case; nothing where there is none to be swept."""
        road: Callable[[Case], str] | None = getattr(self.backend.oracle, "road", None)
        if road is None:
            return case.id
        try:
            return road(case)
        except Exception:
            # Asking the case itself tells why.
            return ""

    def _verdict(self, case: Case, verdict: Verdict, message: str = "", **more: Any) -> Judgement:
        return Judgement(case.id, self.backend.name, verdict, message, **more)

    def ask(self, case: Case, rules: Ruling, inputs: Bits) -> Bits:
        """The backend's answers, in the form that answers have."""
        # A copy: what an oracle does to its inputs must not reach what it is judged by.
        answer = contained(lambda: answer_of(self.backend.oracle, case, inputs.copy()))
        # A copy again: an oracle may use one buffer for all its answers.
        return checked(rules.target, inputs, answer).copy()

    def ask_each(self, case: Case, rules: Ruling, inputs: Sequence[Bits]) -> Iterator[Bits]:
        """The answers to one tensor after another; one message asks for all where that is dear."""
        together = getattr(self.backend.oracle, "cast_each", None)
        known = together(case, inputs) if together and receiver_of(case.document) is None else ()
        for place, part in enumerate(inputs):
            if place < len(known):
                yield checked(rules.target, part, known[place])
            else:
                yield self.ask(case, rules, part)

    def _rejected(self, case: Case, rules: Ruling, inputs: Bits) -> Judgement:
        try:
            answer = self.ask(case, rules, inputs)
        except (Unsupported, AnswerError):
            raise
        except DepartedError as departed:
            [*_, branch] = rules.branches
            message = f"is not refused, but {departed.fault.message}"
            fault = Fault("answer", branch.rule, branch.clause, branch.level, message)
            return self._faulty(case, rules, inputs, [], [fault])
        except Exception as error:
            message = refusal(rules.error_class, error)
            return self._verdict(case, "conforms", message, inputs=inputs.size)
        expected = Expected(*(np.zeros(inputs.size, np.uint8) for _ in range(3)))
        broken = np.full(inputs.size, 2, np.uint8)
        return self._compared(case, rules, inputs, expected, answer, broken)

    def _answered(self, case: Case, rules: Ruling, inputs: Bits) -> Judgement:
        expected = self.expectations.of(rules, inputs)
        is_open = np.isin(expected.places, rules.open_places)
        asked, message = inputs, ""
        try:
            answer = self.ask(case, rules, inputs)
        except (Unsupported, AnswerError, DepartedError):
            raise
        except Exception as error:
            if rules.is_open_dtype or (is_open.all() and not rules.is_open):
                return self._verdict(case, "open", described(error), inputs=inputs.size)
            if rules.is_open or not is_open.any():
                raise self.blamed(case, rules, inputs, error) from error
            # An error is a fair answer to an open input, so the others are asked without them.
            message = f"open inputs: {described(error)}"
            asked, expected = inputs[~is_open], expected.at(~is_open)
            answer = self.ask_or_blame(case, rules, asked)
        broken = levels_broken(rules, asked, expected, answer)
        again = partial(self.ask_each, case, rules)
        shapes = shapes_of(f"{case.source}/{case.target}", self.is_dear)
        faults = [
            *shape_faults(case, rules, asked, expected, answer, broken, again, shapes),
            *self._call_faults(case, rules, asked),
        ]
        worst = self._across_limits(case, rules, asked, expected, answer, broken)
        compared = self._compared(case, rules, asked, expected, worst.answer, worst.broken, faults)
        messages = (message, *worst.notes, compared.message)
        return replace(
            compared,
            message="; ".join(part for part in messages if part),
            inputs=inputs.size,
            open_inputs=int(is_open.sum()),
        )

    def _across_limits(
        self,
        case: Case,
        rules: Ruling,
        inputs: Bits,
        expected: Expected,
        answer: Bits,
        broken: NDArray[np.uint8],
    ) -> row_limits.Judged:
        """Each input's worst answer in rows of the lengths at which the backend's way changes."""
        in_one_row = row_limits.Judged(answer, broken)
        limits: Sequence[int] = getattr(self.backend.oracle, "row_limits", ())
        if not limits or case.example is not None:
            return in_one_row
        ask_each = partial(self._ask_rows, case, rules)
        try:
            return row_limits.across(limits, rules, inputs, expected, in_one_row, ask_each)
        except (AnswerError, DepartedError):
            raise
        except Exception as error:
            raise OracleError(described(error)) from error

    def _ask_rows(self, case: Case, rules: Ruling, rows: Sequence[Bits]) -> Sequence[Bits]:
        """The answers to several rows; they are kept for the next case on the same road."""
        is_shared = receiver_of(case.document) is None and rules.source.kind != "text"
        road = self.road(case) if is_shared else ""
        key = (road, *(row.tobytes() for row in rows)) if road else None
        if key is None or key != self._asked_rows[0]:
            self._asked_rows = key, list(self.ask_each(case, rules, rows))
        return self._asked_rows[1]

    def _call_faults(self, case: Case, rules: Ruling, inputs: Bits) -> Iterator[Fault]:
        """What is wrong about a call besides its values, where the document says anything of it."""
        if not rules.is_open_dtype:

            def make(call: Call, held: Mapping[str, Bits]) -> Returned:
                return contained(call_by, self.backend.oracle, case, call, held)

            yield from call_faults(case, inputs[:4], make)

    def ask_or_blame(self, case: Case, rules: Ruling, inputs: Bits) -> Bits:
        """The backend's answers, or an error that names the inputs on which it raises."""
        try:
            return self.ask(case, rules, inputs)
        except (Unsupported, AnswerError, DepartedError):
            raise
        except Exception as error:
            raise self.blamed(case, rules, inputs, error) from error

    def blamed(self, case: Case, rules: Ruling, inputs: Bits, error: Exception) -> OracleError:
        """An error that names the inputs on which the backend raises."""
        guilty = blame(rules.source, inputs, lambda part: self.ask(case, rules, part))
        return OracleError(f"{guilty}: {described(error)}")

    def _compared(
        self,
        case: Case,
        rules: Ruling,
        inputs: Bits,
        expected: Expected,
        answer: Bits,
        broken: NDArray[np.uint8],
        faults: Sequence[Fault] = (),
    ) -> Judgement:
        found = list(divergences(rules, inputs, expected, answer, broken))
        answered = Answered(Kept(case.source, inputs), Kept(case.target, answer))
        return replace(self._faulty(case, rules, inputs, found, faults), answered=answered)

    def _faulty(
        self,
        case: Case,
        rules: Ruling,
        inputs: Bits,
        found: Sequence[tuple[Divergence, int]],
        faults: Sequence[Fault],
    ) -> Judgement:
        """The verdict that follows from wrong values and from what else is wrong."""
        if faults and not found and faults[0].kind != "answer":
            verdict = "unsupported" if faults[0].kind == "unsupported" else self.failed(case)
            return self._verdict(case, verdict, faults[0].message, inputs=inputs.size)
        counted = tuple(fault for fault in faults if fault.kind != "unsupported")
        levels = {divergence.level for divergence, _ in found} | {fault.level for fault in counted}
        return self._verdict(
            case,
            self.graded(case, levels, rules.is_open),
            "; ".join(fault.message for fault in faults),
            inputs=inputs.size,
            divergences=tuple(divergence for divergence, _ in found),
            faults=counted,
            reproduction=self.reproduction(case, rules, inputs[found[0][1] :][:1]) if found else "",
        )

    def graded(self, case: Case, levels: set[str], is_open: bool) -> Verdict:
        """The verdict on a case that breaks rules of these levels; it may be open as a whole."""
        if not levels:
            return "open" if is_open else "conforms"
        if not self.claimed(case):
            return "differs"
        return "violates" if "required" in levels else "deviates"

    def failed(self, case: Case) -> Verdict:
        """The verdict where an answer is due, but an error or a malformed answer comes."""
        return "error" if self.claimed(case) else "differs"

    def claimed(self, case: Case) -> bool:
        """Whether a broken rule counts: the oracle claims the edition, or the user named it."""
        is_named = case.document in self.settings.asked_for
        return is_named or self.backend.claims(case.document, case.version)

    def reproduction(self, case: Case, rules: Ruling, smallest: Bits) -> str:
        """The adapter's own script for one input, or the command that shows the same."""
        given = datum_of(smallest[0])
        shown = shlex.quote(given) if isinstance(given, str) else rules.source.hexadecimal(given)
        name = shlex.quote(self.backend.name)
        command = f"castigate explain {case.id} --backend {name} -- {shown}"
        make = getattr(self.backend.oracle, "reproduce", None)
        if make is None:
            return printable(command)
        try:
            return printable(str(make(case, smallest.copy())))
        except Exception as error:
            return printable(f"{command}\n# the adapter's own script failed: {described(error)}")
