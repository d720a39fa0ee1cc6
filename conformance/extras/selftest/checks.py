"""Checks that a backend speaks its protocol, before any document judges what it answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from math import prod
from time import perf_counter
from typing import Any

import numpy as np

from conformance.extras.selftest.samples import sample, sample_cases
from conformance.families import NAMED_TENSORS, SHAPED_TENSORS, tensor_of
from conformance.families.named_tensors import AboutTensors
from conformance.families.reference import Reference
from conformance.judging.verdicts import crash_message
from oracles.backend.client import Client
from oracles.backend.frames import SLOT_BYTES
from oracles.backend.replies import (
    Answered,
    Crashed,
    Declined,
    Malformed,
    NoAnswer,
    Raised,
    attempt,
    checked,
    malformed,
    value_of,
)
from oracles.backend.requests import Cast
from oracles.protocol import Bits, Oracle, WithDtypes, WithSweep, offers
from oracles.registry import Backend
from oracles.smoke_check import sample_patterns
from reports.grading.allowed_answers import is_nan
from specs.cases import Case, format_shape
from specs.formats import Format, format_named, formats
from specs.loader import documents
from specs.operations import X, Y, is_cast, tensor_dtypes
from specs.ruling import ruling
from specs.selection import cases_of_pair, select

UNCHANGED, OTHER_NANS = "unchanged", "unchanged, but NaNs come back as other NaNs"
NOT_LISTED = "not asked: in no document it comes back unchanged"
NOT_CLAIMED = "not asked: of its dtypes no case is claimed"
AFTER_SILENCE = "not asked after this silence"
ANSWERED, RIGHT = "answered", "right"
SHORT_ROW, LONG_ROW, LONGEST_ROW = 1 << 10, 1 << 19, 1 << 24
"""Elements. Runs send rows of up to ``LONG_ROW``; a backend that cannot answer these is broken."""
SECONDS_OF_A_ROW = 2.0
"""After a row that took more seconds than this, no longer row is sent."""
SHAPES = ((), (0,), (2, 3), (2, 0, 3), (1, 2, 3, 1), (2, 1, 2, 1, 2))
"""Ranks 0 to 5, and tensors without elements: a run sends all of them."""
MOST_TRIES = 100
"""The most cases tried to find one that is answered, if no cast of a dtype to itself is."""
MOST_SAMPLES = 8
"""The most cases of the same dtypes that are tried to find one that is not declined."""
SECONDS_OF_A_FIGURE = 0.5


@dataclass(frozen=True)
class CheckResult:
    """The result of one check: ``check`` and ``subject`` name what was tested.

    The subject is a dtype, a shape, a length or a speed, for instance, and ``result`` is in words.
    ``is_broken`` says that the backend does not do what docs/protocol.md requires.
    """

    check: str
    subject: str
    result: str
    is_broken: bool = False


@dataclass(frozen=True)
class SampleCast:
    """A cast that the backend answers: its inputs, and the answers to them."""

    case: Case
    inputs: Bits
    answers: Bits


class SelfTest:
    """Tests if a backend keeps bits, and answers long rows and all ranks; measures its speed."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._oracle = backend.oracle
        self._client = Client(backend)
        self._answered: list[SampleCast] = []
        self._longest = 0
        """Elements of the longest row that was answered."""
        self._is_silent = False
        """Whether a request ran into the timeout: each further one would last as long."""
        self._compares_values = False
        """Whether any case of a dtype to itself was answered."""
        self._has_results = False
        """Whether any sample of named tensors was answered."""
        self._dtypes = (
            tuple(backend.oracle.dtypes)
            if isinstance(backend.oracle, WithDtypes)
            else tuple(formats())
        )

    @cached_property
    def probe(self) -> SampleCast | None:
        """The answered cast with which limits and speeds are tested, or None; found at first use.

        Of the casts that ``identities`` found answered, it is the one with the widest numeric
        source of up to 32 bits, or else the first. If there are none, it is the first claimed cast
        that is answered, unless a request has timed out.
        """
        known = self._answered
        if not known and not self._is_silent:
            known = list(islice(self._answered_casts(), 1))
        return max(known, key=lambda each: _usefulness(each.case), default=None)

    @property
    def has_answers(self) -> bool:
        """Whether any cast, or any sample of named tensors, was answered."""
        return self.probe is not None or self._has_results

    def identities(self) -> Iterator[CheckResult]:
        """Yield for each offered operation and each dtype whether bits come back unchanged.

        The operations are casts, those on tensors of any shape, and sweeps of up to 32-bit numbers.
        """
        asks: dict[str, Callable[[Case, Bits], Bits]] = {"cast": self._cast}
        for operation in SHAPED_TENSORS:
            if offers(self._oracle, operation):
                asks[operation] = self._in_any_shape
        if isinstance(self._oracle, WithSweep):
            asks["sweep"] = self._sweep
        for check, ask in asks.items():
            for form in map(format_named, self._dtypes):
                if self._is_silent:
                    yield CheckResult(check, form.name, AFTER_SILENCE)
                elif check != "sweep" or (form.is_numeric and form.bits <= 32):
                    yield self._identity(check, form, ask)

    def named_tensors(self) -> Iterator[CheckResult]:
        """Yield whether operations on named tensors give the results that the reference gives.

        There is one result per operation and pair of dtypes of claimed cases, or only one if there
        is no such case. A backend without such operations gets none.
        """
        method = AboutTensors.method
        if not offers(self._oracle, method):
            return
        cases = {each: sample_cases(self._backend, each, self._dtypes) for each in NAMED_TENSORS}
        if not any(cases.values()):
            yield CheckResult(method, "", NOT_CLAIMED)
        for operation, by_dtypes in cases.items():
            for subject, each in by_dtypes.items():
                if self._is_silent:
                    yield CheckResult(operation, subject, AFTER_SILENCE)
                else:
                    yield self._sample(operation, subject, each[:MOST_SAMPLES])

    def values(self) -> Iterator[CheckResult]:
        """Yield that values are unchecked, if casts are answered but none of a dtype to itself."""
        if self.probe is not None and not self._compares_values:
            pair = f"{self.probe.case.source} to {self.probe.case.target}"
            text = f"unchecked, as is the order of bytes: only casts like {pair} are answered"
            yield CheckResult("values", "", text)

    def limits(self) -> Iterator[CheckResult]:
        """Yield the longest row that is answered, and whether each of ``SHAPES`` is answered.

        Yields nothing without a ``probe``, or once a request has timed out.
        """
        if self.probe is None or self._is_silent:
            return
        yield self._longest_row(self.probe)
        for shape in SHAPES:
            inputs = np.resize(self.probe.inputs, prod(shape)).reshape(shape)
            found = attempt(partial(self._cast, self.probe.case, inputs))
            yield self._answer("shape", format_shape(shape), found)

    def speeds(self, without_memory: Oracle | None) -> Iterator[CheckResult]:
        """Yield the speeds of casts and sweeps, if ``limits`` found that long rows are answered.

        ``without_memory`` is the same program without shared memory, or None if there is no such.
        """
        if self.probe is None or self._longest < LONG_ROW:
            return
        case, row = self.probe.case, np.resize(self.probe.inputs, LONG_ROW)
        timed: dict[str, tuple[str, Callable[[], int]]] = {
            "single elements": ("requests", lambda: self._cast(case, row[:1]).size),
            "rows": ("elements", lambda: self._cast(case, row).size),
        }
        source = format_named(case.source)
        if source.is_numeric and source.bits <= 32:
            for name, oracle in (
                ("sweeps", self._oracle),
                ("sweeps without shared memory", without_memory),
            ):
                if isinstance(oracle, WithSweep):
                    timed[name] = "elements", _sweep_steps(oracle, case)
        for name, (unit, ask) in timed.items():
            yield self._answer("speed", name, attempt(partial(_rate, ask)), f"{{}} {unit}/s")

    def _identity(self, check: str, form: Format, ask: Callable[[Case, Bits], Bits]) -> CheckResult:
        inputs = sample_patterns(form)
        operation = check if check in SHAPED_TENSORS else "cast"
        case = identity_case(self._backend, operation, form, inputs)
        if case is None:
            return CheckResult(check, form.name, NOT_LISTED)
        if check == "sweep":
            inputs = np.arange(min(1 << form.bits, 1 << 16)).astype(form.storage)
        # One element first: it shows a crash on any input without a search for the guilty one.
        found = attempt(partial(ask, case, inputs[:1]))
        if isinstance(found, Answered):
            found = attempt(partial(ask, case, inputs))
        if not isinstance(found, Answered):
            self._is_silent = isinstance(found, Crashed) and found.death.silent
            missing = _without_answer(check, form.name, form, found)
            is_claimed = self._backend.claims(case.document, case.version)
            # No document that it claims gives this dtype back: an error is as good as a refusal.
            is_free = isinstance(found, Raised) and not is_claimed
            return replace(missing, is_broken=False) if is_free else missing
        answers = found.value
        self._compares_values = True
        if check == "cast":
            self._answered.append(SampleCast(case, inputs, answers))
        changed = answers != inputs
        nans = is_nan(form, inputs) & is_nan(form, answers) & (operation == "cast")
        wrong = np.flatnonzero(changed & ~nans)
        if wrong.size:
            before, after = (_spelled(form, array[wrong[0]]) for array in (inputs, answers))
            text = f"{before} comes back as {after} ({wrong.size:,} of {inputs.size:,} are changed)"
            return CheckResult(check, form.name, text, is_broken=True)
        return CheckResult(check, form.name, OTHER_NANS if changed.any() else UNCHANGED)

    def _sample(self, check: str, subject: str, cases: Sequence[Case]) -> CheckResult:
        """Send cases until one is not declined; return whether its answer is the reference's."""
        for case in cases:
            asked = sample(case)
            [reply] = self._client.send([AboutTensors(case, asked.tensors)])
            if not isinstance(reply, Declined):
                break
        if not isinstance(reply, Answered):
            self._is_silent = isinstance(reply, Crashed) and reply.death.silent
            return _without_answer(check, subject, format_named(case.source), reply)
        self._has_results = True
        shape, due = reply.value[Y].shape, asked.tensors[X].shape
        if shape != due:
            text = f"`{Y}` has shape {shape}, `{X}` {due}"
            return CheckResult(check, subject, text, is_broken=True)
        dtypes = tensor_dtypes(case).returned
        for name, wanted in asked.results.items():
            fault = _wrong_result(format_named(dtypes[name]), reply.value[name], wanted)
            if fault:
                return CheckResult(check, subject, f"`{name}` {fault}", is_broken=True)
        return CheckResult(check, subject, RIGHT)

    def _answer(
        self, check: str, subject: str, found: Answered[Any] | NoAnswer, text: str = ANSWERED
    ) -> CheckResult:
        assert self.probe is not None
        if isinstance(found, Answered):
            return CheckResult(check, subject, text.format(found.value))
        return _without_answer(check, subject, format_named(self.probe.case.source), found)

    def _cast(self, case: Case, inputs: Bits) -> Bits:
        [reply] = self._client.send([Cast(case, inputs)])
        answer: Bits = value_of(reply)
        return answer

    def _in_any_shape(self, case: Case, inputs: Bits) -> Bits:
        shaped = tensor_of(case)
        assert shaped is not None
        [reply] = self._client.send([shaped.request(case, inputs)])
        answer: Bits = value_of(reply)
        if answer.shape != inputs.shape:
            raise malformed(f"the answer has shape {answer.shape}, the input {inputs.shape}")
        return answer

    def _sweep(self, case: Case, inputs: Bits) -> Bits:
        assert isinstance(self._oracle, WithSweep)
        part = self._oracle.sweep(case, 0, inputs.size)
        return checked(format_named(case.target), inputs, part(0, inputs.size))

    def _longest_row(self, probe: SampleCast) -> CheckResult:
        failed, length = "", SHORT_ROW
        while length <= LONGEST_ROW and not failed:
            inputs, due = np.resize(probe.inputs, length), np.resize(probe.answers, length)
            begun = perf_counter()
            found = attempt(partial(self._cast, probe.case, inputs))
            if not isinstance(found, Answered):
                missing = _without_answer("", "", format_named(probe.case.source), found)
                failed = f"{length:,}: {missing.result}"
            elif (found.value != due).any():
                failed = f"{length:,}: other answers than to the same inputs in a short row"
            else:
                self._longest = length
            length = length * 2 if perf_counter() - begun < SECONDS_OF_A_ROW else 2 * LONGEST_ROW
        text = f"{self._longest:,} elements of {probe.case.source} are answered"
        if not failed:
            return CheckResult("row", "longest sent", text)
        return CheckResult(
            "row", "longest", f"{text}; {failed}", is_broken=self._longest < LONG_ROW
        )

    def _answered_casts(self) -> Iterator[SampleCast]:
        """Yield claimed casts that the backend answers, among the first ``MOST_TRIES`` of them."""
        tries = 0
        for case in select(map(str, self._backend.claimed)):
            forms = format_named(case.source), format_named(case.target)
            if not all(form.is_numeric and form.name in self._dtypes for form in forms):
                continue
            if not is_cast(case) or case.example is not None or ruling(case).is_rejection:
                continue
            inputs = sample_patterns(forms[0])[:16]
            found = attempt(partial(self._cast, case, inputs))
            if isinstance(found, Answered):
                yield SampleCast(case, inputs, found.value)
            tries += 1
            if tries == MOST_TRIES:
                return


def identity_case(backend: Backend, operation: str, form: Format, inputs: Bits) -> Case | None:
    """Find a case of an operation, from ``form`` to itself, that must return ``inputs``; else None.

    Documents that the backend claims are searched first. A cast may change NaNs.
    """
    known = [
        (name, version)
        for name, document in documents().items()
        if document.entry.operation == operation
        for version in reversed(document.entry.versions)
    ]
    for name, version in sorted(known, key=lambda each: not backend.claims(*each)):
        for case in cases_of_pair(name, version, form.name, form.name):
            if case.example is None and _comes_back(case, inputs):
                return case
    return None


def _comes_back(case: Case, inputs: Bits) -> bool:
    """Whether the document of a case wants all inputs back; a cast may change NaNs."""
    shaped = tensor_of(case)
    if shaped is not None:
        return shaped.comes_back(case, inputs)
    cast = ruling(case)
    if cast.is_rejection or cast.is_open:
        return False
    changed = Reference().cast(case, inputs) != inputs
    return not (changed & ~is_nan(cast.source, inputs)).any()


def _spelled(form: Format, element: Any) -> str:
    if form.kind == "text":
        return repr(element)
    if form.bits > 64:
        return form.hexadecimal(int.from_bytes(element.tobytes(), "little"))
    return form.hexadecimal(int(element))


def _wrong_result(form: Format, got: Bits, wanted: Bits) -> str:
    """Say how the elements of a result differ from the wanted ones; empty if they do not.

    Shapes are not compared.
    """
    if got.size != wanted.size:
        return f"has {got.size:,} elements, not {wanted.size:,}"
    pairs = zip(got.reshape(-1).tolist(), wanted.reshape(-1).tolist(), strict=True)
    wrong = [(at, *pair) for at, pair in enumerate(pairs) if pair[0] != pair[1]]
    if not wrong:
        return ""
    at, found, due = wrong[0]
    shown = f"{_spelled(form, found)}, not {_spelled(form, due)}"
    return f"is {shown}, at {at} ({len(wrong):,} of {wanted.size:,} are wrong)"


def _usefulness(case: Case) -> int:
    form = format_named(case.source)
    return form.bits if form.is_numeric and form.bits <= 32 else 0


def _without_answer(check: str, subject: str, form: Format, missing: NoAnswer) -> CheckResult:
    """Make the result of a check that got no answer; it is broken unless the backend declined.

    ``form`` is the format of the inputs, in which the message of a crash names them.
    """
    match missing:
        case Declined(text):
            return CheckResult(check, subject, f"unsupported: {text}")
        case Crashed():
            text = f"crashed: {crash_message(form, missing)}"
        case Malformed(text):
            text = f"invalid answer: {text}"
        case Raised():
            text = f"error: {missing.text}"
    return CheckResult(check, subject, text, is_broken=True)


def _rate(ask: Callable[[], int]) -> str:
    """Call ``ask``, which returns a count, for at least 0.5 s; return the count per second.

    The figure is in words, such as ``1.5 million``.
    """
    begun = perf_counter()
    count = ask()
    if perf_counter() - begun < SECONDS_OF_A_FIGURE:
        count, begun = 0, perf_counter()  # the first one may have compiled or allocated
        while not count or perf_counter() - begun < SECONDS_OF_A_FIGURE:
            count += ask()
    rate = count / (perf_counter() - begun)
    return f"{rate / 1e6:,.1f} million" if rate >= 1e6 else f"{rate:,.0f}"


def _sweep_steps(oracle: WithSweep, case: Case) -> Callable[[], int]:
    """Return a function that sweeps one more block of patterns, and returns how many it answered.

    After the last block it begins again.
    """
    end = 1 << format_named(case.source).bits
    step = min(end, SLOT_BYTES // np.dtype(format_named(case.target).storage).itemsize)

    def steps() -> Iterator[int]:
        while True:
            part = oracle.sweep(case, 0, end)
            for first in range(0, end, step):
                yield part(first, step).size

    return partial(next, steps())
