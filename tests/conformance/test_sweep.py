"""A sweep counts what a walk counts, however many rulings judge it and however it is cut."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import reduce
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import conformance.sweep as module
from conformance.forms import fastest, forms
from conformance.joining import joined
from conformance.meet import Meeting, Settings
from conformance.selection import case_named
from conformance.sweep import sweep
from oracles.protocol import Unsupported
from oracles.reference import by_kernels
from oracles.reference.oracle import Reference
from oracles.reference.visits import Dense, Sample, Steps, Visit
from oracles.registry import Backend
from reports.accept import levels_broken
from reports.divergences import simplest_between, simplicity
from reports.judgement import Divergence, Judgement
from reports.runs import gather, no_runs
from specs.cases import Case
from specs.formats import format_named
from specs.ruling import ruling
from tests.conformance.test_visits import rulings_of
from tests.reference.distinct import numeric_rulings

RIGHT = Reference()
SMALL_CHUNK = 1 << 12
DENSE = Dense(1 << 32)
Change = Callable[[Any, Any], Any]
"""Inputs and right answers to what is answered; it may raise."""


def unchanged(_: Any, answers: Any) -> Any:
    return answers


@dataclass
class Planted:
    """Answers every case as one of them wants it, with a change."""

    base: str
    change: Change = unchanged
    name: str = "planted"
    version: str = "0"
    asked: int = field(default=0)

    def cast(self, case: Case, bits: Any) -> Any:
        self.asked += bits.size
        return self.change(bits, RIGHT.cast(case_named(self.base), bits))


class Bound(Planted):
    """The same behind a bound call, which gives one and the same array every time."""

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        answers = np.empty(bits.size, format_named(case.target).storage)

        def call() -> Any:
            answers[:] = self.cast(case, bits)
            return answers

        return call


class BoundTo(Planted):
    """Hands out whatever the change gives."""

    def bind(self, case: Case, bits: Any) -> Callable[[], Any]:
        return lambda: self.cast(case, bits)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHUNK", SMALL_CHUNK)


def swept(
    oracle: Planted, names: list[str], lo: int, hi: int, visit: Visit = DENSE, fast: bool = True
) -> list[Judgement]:
    told: list[tuple[int, int]] = []
    meeting = Meeting(Backend("planted", oracle), {}, Settings())
    cases = [case_named(name) for name in names]
    form = fastest() if fast else forms(False)
    found = sweep(meeting, cases, visit, lo, hi, form, lambda *news: told.append(news))
    if not any(each.verdict in ("error", "unsupported") for each in found):
        assert sum(count for count, _ in told) == hi - lo
        assert sum(wrong for _, wrong in told) == sum(each.wrong for each in found)
    return found


def plain(value: Any) -> Any:
    """Dataclasses and arrays as what can be compared."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    return [plain(each) for each in value] if isinstance(value, tuple) else value


def walked(oracle: Planted, name: str, inputs: Any) -> list[Divergence]:
    """What a comparison of every single answer finds, the worst level first."""
    case = case_named(name)
    rules = ruling(case)
    expected = by_kernels.expect(rules, inputs)
    answers = oracle.cast(case, inputs)
    broken = levels_broken(rules, inputs, expected, answers) > 0
    found: dict[tuple[str, str, str], Any] = {}
    for place, branch in enumerate(rules.branches):
        key = (branch.rule, branch.clause, branch.level)
        found[key] = found.get(key, False) | (broken & (expected.places == place))
    divergences = []
    for key in sorted(found, key=lambda key: (key[2] != "required", key)):
        here = found[key]
        if here.any():
            smallest = min(inputs[here].tolist(), key=lambda code: simplicity(rules.source, code))
            answer = int(answers[inputs == smallest][0])
            runs = dict(gather(inputs, answers, here.astype(np.uint8))).get(1)
            runs = runs or no_runs(inputs, answers)
            divergences.append(Divergence(*key, int(here.sum()), runs, smallest, answer, ()))
    return divergences


def assert_found(judgement: Judgement, oracle: Planted, inputs: Any) -> None:
    known = walked(oracle, judgement.case, inputs)
    assert [plain(replace(each, allowed=())) for each in judgement.divergences] == plain(
        tuple(known)
    )
    rules = ruling(case_named(judgement.case))
    places = by_kernels.expect(rules, inputs).places
    assert judgement.open_inputs == np.isin(places, rules.open_places).sum()
    assert judgement.inputs == inputs.size
    assert judgement.wrong == sum(each.count for each in known)
    level = "violates" if any(each.level == "required" for each in known) else "deviates"
    assert judgement.verdict == (level if known else "open" if rules.is_open else "conforms")
    assert all(each.allowed for each in judgement.divergences)
    assert bool(judgement.reproduction) == bool(known)


def names_of(pair: str) -> list[str]:
    wanted = set(rulings_of(pair))
    return [name for name, rules in numeric_rulings().items() if rules in wanted]


def at_random(density: int) -> Change:
    """Flips a bit of answers that depends on the input, of one in so many."""

    def change(inputs: Any, answers: Any) -> Any:
        mixed = (inputs.astype(np.uint64) * np.uint64(0x9E37_79B9_7F4A_7C15)) >> np.uint64(40)
        flip = (np.uint64(1) << (mixed & np.uint64(3))).astype(answers.dtype)
        return np.where(mixed % np.uint64(density) == 0, answers ^ flip, answers)

    return change


# From below to above where the target ends, or a binade: no multiples of a chunk.
RANGES = {
    "float32/float16": (0x477F_E3A1, 0x4780_3123),
    "float32/int8": (0x42FD_D001, 0x42FE_2345),
    "float32/int32": (0x4EFF_F7FF, 0x4F00_2001),
    "int32/float32": (0x00FF_E111, 0x0100_4321),
    "uint32/float8e4m3fn": (0x0000_0000, 0x0000_2001),
    "float32/float8e8m0": (0xFFFF_C0DE, 0x1_0000_0000),
}
CHANGES: dict[str, Change] = {
    "right": unchanged,
    "one in 7": at_random(7),
    "one in 3000": at_random(3000),
    "all alike": lambda _, answers: np.full_like(answers, 1),
}


@pytest.mark.parametrize("fast", [True, False], ids=["fastest", "numpy"])
@pytest.mark.parametrize("oracle_class", [Planted, Bound])
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("pair", RANGES)
def test_counts_are_exact_for_each_of_several_rulings(
    pair: str, change: str, oracle_class: type[Planted], fast: bool
) -> None:
    lo, hi = RANGES[pair]
    names = names_of(pair)
    oracle = oracle_class(names[0], CHANGES[change])
    found = swept(oracle, names, lo, hi, fast=fast)
    assert oracle.asked == -(-(hi - lo) // SMALL_CHUNK) * SMALL_CHUNK
    assert [each.case for each in found] == names
    inputs = np.arange(lo, hi, dtype=np.uint64).astype(np.uint32)
    for judgement in found:
        assert_found(judgement, oracle, inputs)
    if oracle_class is Bound:
        alone = [swept(oracle, [name], lo, hi, fast=fast)[0] for name in names]
        assert plain(tuple(alone)) == plain(tuple(found))


@pytest.mark.parametrize("oracle_class", [Planted, Bound])
@pytest.mark.parametrize("pair", ["float64/float8e8m0", "uint64/bfloat16", "int64/float4e2m1"])
def test_counts_are_exact_on_the_steps_of_a_64_bit_source(
    pair: str, oracle_class: type[Planted]
) -> None:
    names = names_of(pair)
    chosen = Steps(rulings_of(pair))
    inputs = np.zeros(chosen.size, np.uint64)
    chosen.fill(inputs, 0)
    oracle = oracle_class(names[0], at_random(11))
    found = swept(oracle, names, 0, chosen.size, chosen)
    for judgement in found:
        assert_found(judgement, oracle, inputs)


CUTS = {
    "dense": ("float32/float16", DENSE, *RANGES["float32/float16"]),
    "int8": ("float32/int8", DENSE, *RANGES["float32/int8"]),
    "steps": ("uint64/bfloat16", Steps(rulings_of("uint64/bfloat16")), 100, 15_000),
    "sample": ("float64/float16", Sample(format_named("float64"), (1, 2), 1 << 14), 0, 1 << 14),
}


def raising_where_open(name: str, change: Change) -> Change:
    rules = ruling(case_named(name))

    def raising(inputs: Any, answers: Any) -> Any:
        places = by_kernels.expect(rules, inputs).places
        if np.isin(places, rules.open_places).any():
            raise ValueError("no")
        return change(inputs, answers)

    return raising


@pytest.mark.parametrize("raises", [False, True], ids=["answers", "raises where open"])
@pytest.mark.parametrize("name", CUTS)
@given(cuts=st.lists(st.floats(0, 1), max_size=5), density=st.sampled_from([2, 50, 3_000]))
@settings(max_examples=12, deadline=None)
def test_the_parts_of_any_cut_make_up_the_whole(
    name: str, raises: bool, cuts: list[float], density: int
) -> None:
    pair, visit, lo, hi = CUTS[name]
    names = names_of(pair)[:1] if raises else names_of(pair)
    change = at_random(density)
    oracle = Bound(names[0], raising_where_open(names[0], change) if raises else change)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CHUNK", SMALL_CHUNK)
        whole = swept(oracle, names, lo, hi, visit)
        edges = sorted({lo, hi, *(lo + int(cut * (hi - lo)) for cut in cuts)})
        parts = [swept(oracle, names, *part, visit) for part in pairwise(edges)]
    for number, one in enumerate(whole):
        each = [part[number] for part in parts]
        assert plain(reduce(joined, each)) == plain(one)
        assert plain(reduce(lambda later, part: joined(part, later), reversed(each))) == plain(one)


INT8 = "onnx-cast:13/float32/int8"
HALF = "onnx-cast:13/float32/float16"
LO, HI = RANGES["float32/int8"]
BOTH = pytest.mark.parametrize("oracle_class", [Planted, Bound])


@BOTH
def test_an_error_on_open_inputs_is_no_error(oracle_class: type[Planted]) -> None:
    def wrong_first(inputs: Any, answers: Any) -> Any:
        return np.where(inputs == LO, answers ^ 1, answers)

    oracle = oracle_class(INT8, raising_where_open(INT8, wrong_first))
    [found] = swept(oracle, [INT8], LO, HI)
    right = swept(Planted(INT8, wrong_first), [INT8], LO, HI)[0]
    assert right.open_inputs > 0
    assert found.message == "open inputs: ValueError: no"
    assert plain(replace(found, message="")) == plain(right)
    assert found.wrong == 1


@BOTH
def test_an_error_on_nothing_but_open_inputs_is_no_error(oracle_class: type[Planted]) -> None:
    def never(inputs: Any, answers: Any) -> Any:
        raise ValueError("not even for none")

    [found] = swept(oracle_class(INT8, never), [INT8], 0x4400_0000, 0x4400_2000)
    assert (found.verdict, found.message) == (
        "conforms",
        "open inputs: ValueError: not even for none",
    )
    assert found.open_inputs == found.inputs == 0x2000


@BOTH
def test_an_error_on_an_input_that_has_an_answer_names_it(oracle_class: type[Planted]) -> None:
    def raising(inputs: Any, answers: Any) -> Any:
        if (inputs == 0x4780_1234).any():
            raise OverflowError("too large\nor so")
        return answers

    names = [HALF, "pypto-cast:seed/float32/float16/mode:CAST_RINT"]
    lo, hi = RANGES["float32/float16"]
    for found in swept(oracle_class(HALF, raising), names, lo, hi):
        assert found.verdict == "error"
        assert "0x47801234" in found.message
        assert found.message.endswith("OverflowError: too large")
        assert (found.inputs, found.divergences) == (0, ())


@BOTH
def test_after_an_error_nothing_is_counted(oracle_class: type[Planted]) -> None:
    def raising(inputs: Any, answers: Any) -> Any:
        if (inputs == 0x4780_1234).any():
            raise OverflowError("too large")
        return answers ^ 1

    lo, _ = RANGES["float32/float16"]
    [found] = swept(oracle_class(HALF, raising), [HALF], lo, 0x4780_9000)
    assert found.verdict == "error"
    assert found.message.endswith(": OverflowError: too large")
    assert (found.inputs, found.wrong, found.divergences) == (0, 0, ())


@BOTH
def test_an_error_on_inputs_beyond_the_part_is_not_the_parts(oracle_class: type[Planted]) -> None:
    lo, hi = RANGES["float32/float16"]

    def raising(inputs: Any, answers: Any) -> Any:
        if (inputs >= hi).any():
            raise ValueError("beyond")
        return answers

    [found] = swept(oracle_class(HALF, raising), [HALF], lo, hi)
    assert (found.verdict, found.message, found.inputs) == ("conforms", "", hi - lo)


def raises(error: BaseException) -> Change:
    def raising(inputs: Any, answers: Any) -> Any:
        raise error

    return raising


def overwriting(inputs: Any, answers: Any) -> Any:
    inputs[5] = 0
    return answers


@pytest.mark.parametrize(
    ("change", "verdict", "message"),
    [
        (raises(Unsupported("no such kernel\nat all")), "unsupported", "no such kernel"),
        (lambda x, y: y.astype(np.uint32), "error", "the answer's storage is uint32"),
        (lambda x, y: y[:-1], "error", f"the answer has shape ({SMALL_CHUNK - 1},)"),
        (lambda x, y: y.tolist(), "error", "the answer is list, not a numpy array"),
        (raises(SystemExit(3)), "error", "RuntimeError: it wanted to end the run: SystemExit: 3"),
        (raises(GeneratorExit()), "error", "it wanted to end the run: GeneratorExit"),
        (raises(MemoryError("full")), "error", "MemoryError: full"),
    ],
    ids=["unsupported", "dtype", "shape", "list", "exit", "signal", "memory"],
)
@pytest.mark.parametrize("oracle_class", [Planted, BoundTo])
def test_what_is_no_answer(
    oracle_class: type[Planted], change: Change, verdict: str, message: str
) -> None:
    lo, hi = RANGES["float32/float16"]
    names = [HALF, "pypto-cast:seed/float32/float16/mode:CAST_RINT"]
    found = swept(oracle_class(HALF, change), names, lo, hi)
    assert [each.verdict for each in found] == [verdict] * 2
    assert all(message in each.message for each in found)
    assert all((each.inputs, each.divergences) == (0, ()) for each in found)


def test_an_answer_wider_than_its_format_is_no_answer() -> None:
    name = "onnx-cast:21/float32/int4"
    oracle = BoundTo(name, lambda x, y: y | np.uint8(0x10))
    [found] = swept(oracle, [name], 0, 100)
    assert found.verdict == "error"
    assert found.message == "the answer holds 0x10, wider than int4"


@pytest.mark.parametrize("error", [ValueError("bad"), SystemExit(3)])
def test_what_goes_wrong_while_binding_is_an_error(error: BaseException) -> None:
    class Unbinding(Planted):
        def bind(self, case: Case, bits: Any) -> Any:
            raise error

    [found] = swept(Unbinding(HALF), [HALF], 0, 100)
    assert found.verdict == "error"
    assert type(error).__name__ in found.message


def test_binding_may_be_unsupported() -> None:
    class Unbinding(Planted):
        def bind(self, case: Case, bits: Any) -> Any:
            raise Unsupported("not here")

    [found] = swept(Unbinding(HALF), [HALF], 0, 100)
    assert (found.verdict, found.message) == ("unsupported", "not here")


@given(st.sampled_from(["float8e5m2", "int16", "float32", "uint64"]), st.data())
@settings(deadline=None)
def test_the_smallest_of_a_whole_range_is_known_without_a_walk(
    name: str, data: st.DataObject
) -> None:
    source = format_named(name)
    edge = st.integers(0, source.bits).map(lambda place: 1 << place)
    near = data.draw(edge | st.integers(0, source.mask))
    first = max(0, near - data.draw(st.integers(1, 1_000)))
    longest = 1 << 16 if source.bits <= 16 else 1_000
    last = min(source.mask, first + data.draw(st.integers(0, longest)))
    walked = min(range(first, last + 1), key=lambda code: simplicity(source, code))
    assert simplest_between(source, first, last) == walked


WRITES = "the adapter writes to the inputs it is given"


@pytest.mark.parametrize("size", [100, 3 * SMALL_CHUNK + 5])
def test_writing_to_bound_inputs_is_an_error(size: int) -> None:
    [found] = swept(BoundTo(HALF, overwriting), [HALF], 1 << 20, (1 << 20) + size)
    assert (found.verdict, found.message) == ("error", WRITES)


def test_writing_to_bound_inputs_once_is_an_error_too() -> None:
    calls: list[int] = []

    def once(inputs: Any, answers: Any) -> Any:
        calls.append(inputs.size)
        if len(calls) == 2:
            inputs[5] ^= 1
        return answers

    [found] = swept(BoundTo(HALF, once), [HALF], 0, 3 * SMALL_CHUNK)
    assert (found.verdict, found.message) == ("error", WRITES)


def test_writing_to_a_copy_harms_nobody() -> None:
    [found] = swept(Planted(HALF, overwriting), [HALF], 1 << 20, (1 << 20) + 9_000)
    assert found.verdict == "conforms"
