"""Judges chains: whether casts in one program give what they give alone, one after another.

Users do not cast once. In a program a cast has neighbors, and optimizers drop, merge and move it.
So a judge asks a chain twice: its steps one by one, and all of them in one program, on each road
that the backend has. Where the two differ, an optimizer has changed something, and the answer is
wrong if the document does not allow it (``composition.py``). A step that is wrong by itself is
reported in its own case.

The chains of a pair of dtypes travel in one program, each with an input of its own. Where that is
not answered, each is asked alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from conformance.families.chains.composition import Composed, chain_inputs, compose_arrays
from conformance.families.chains.ends_words import ends_words
from conformance.families.chains.program import CastChains
from conformance.families.chains.sweeps import ChainSweep, is_swept, sweep
from conformance.families.chains.wrongs import followed_paths
from conformance.judging.answer_digests import AnswerDigester, spread
from conformance.judging.asking import Ask, Subject, ask
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, NoAnswer, Raised, Reply
from oracles.backend.requests import Cast, Script
from oracles.protocol import Bits
from oracles.reference.chain_ends import ends
from reports.counterexample.drawing import datum_text, datum_with_value
from reports.grading.divergences import datum_of, index_of_simplest
from reports.judgement import AnswerExample, Judgement, Verdict
from reports.problems import Died, Note, Problem, Refused, Unoffered, WrongEnd, WrongForm
from specs.cases import Case
from specs.chains import Chain, Company, chain_named
from specs.formats import format_named
from specs.plain_text import plain_text

RULE = "composition"
"""The rule that no document states, because it follows: each step gives what it gives alone."""
MOST_ELSEWHERE = 1 << 11
"""The most inputs of a chain on each road but the first."""
MOST_RIGHT = 1 << 11
"""The most inputs with right answers on which the mechanisms of a wrong one are tried."""
MOST_TOGETHER = 1 << 22
"""The most inputs of all chains of one program."""


class OnRoad(NamedTuple):
    """The reply to a chain's request on one road.

    ``picked`` are the indices of those of the chain's inputs that the request has.
    """

    road: str
    picked: NDArray[np.intp]
    reply: Reply


@dataclass
class _AskedChain:
    """A chain and its inputs, with what the backend answers to them.

    ``alone`` has the final answers if the steps are requested one by one, and ``direct`` the
    answers to the cast from source to target, or None if there are none. ``on_roads`` has the reply
    on each road.
    """

    name: str
    chain: Chain
    inputs: Bits
    alone: Bits
    direct: Bits | None
    on_roads: list[OnRoad] = field(default_factory=list)
    swept: ChainSweep | None = None
    """The result of the sweep of all patterns on the first road at the tier full, else None."""

    @cached_property
    def composed(self) -> Composed:
        """The answers that the document allows for each input."""
        return compose_arrays(self.chain.rulings, self.inputs)

    def everywhere(self, condition: Any) -> NDArray[np.bool_]:
        """Return a condition, which may be a single truth value, as an array over all inputs."""
        return np.broadcast_to(condition, self.inputs.shape)

    @cached_property
    def telling(self) -> NDArray[np.intp]:
        """The indices of the inputs for further roads; if there are many, of a selection.

        It has an even sample of all inputs, and one of those whose direct cast differs from the
        steps.
        """
        size = self.inputs.size
        if size <= MOST_ELSEWHERE:
            return np.arange(size)
        found = [np.linspace(0, size - 1, MOST_ELSEWHERE // 2).astype(np.intp)]
        if self.direct is not None:
            differs = np.flatnonzero(self.direct != self.alone)
            few = np.linspace(0, max(differs.size - 1, 0), MOST_ELSEWHERE // 2).astype(np.intp)
            found.append(differs[few] if differs.size > few.size else differs)
        return np.unique(np.concatenate(found))


def judge_chains(
    subject: Subject, names: Sequence[str], cases: Sequence[Case]
) -> Ask[list[Judgement]]:
    """Judge some chains of a pair of dtypes; return a judgement on each, with its check.

    ``names`` are names of checks: ``chains/`` and the id of a chain. ``cases`` are the cases of the
    pair. The case of a judgement is the chain's direct cast if ``cases`` has it, else their first.
    """
    chains = {name: chain_named(name.partition("/")[2]) for name in names}
    steps = yield from _alone(chains, subject.broken)
    asked = [each for each in steps.values() if isinstance(each, _AskedChain)]
    for number, road in enumerate(subject.chain_roads):
        yield from _on_road(asked, road, is_first=number == 0)
    for one in asked:
        if subject.settings.is_full(one.chain.steps[0]) and is_swept(one.chain):
            one.swept = yield from sweep(one.chain, subject.chain_roads[0])
    by_id = {case.id for case in cases}
    found: list[Judgement] = []
    for name, each in steps.items():
        direct = chains[name].direct.id
        case = direct if direct in by_id else cases[0].id
        if isinstance(each, Unoffered):
            found.append(Judgement(case, subject.name, "unsupported", (each,), check=name))
        else:
            found.append((yield from _judgement(subject, case, each)))
    return found


def _judgement(subject: Subject, case: str, each: _AskedChain) -> Ask[Judgement]:
    """Return the judgement on a chain that was requested on all roads.

    Its verdict follows from the first problem, or from whether all roads decline.
    """
    problems, is_open = _problems(each)
    first = each.chain.steps[0]
    declined = [on.reply for on in each.on_roads if isinstance(on.reply, Declined)]
    verdict: Verdict
    shown, further = problems[:1], problems[1:]
    script = ""
    match shown:
        case [WrongEnd() as wrong]:
            verdict = subject.graded(first, {wrong.level}, is_open)
            script = yield from _script(subject, each, wrong)
            shown = [replace(wrong, script=script)]
        case [Died()]:
            verdict = "crashed" if subject.claims(first) else "differs"
        case [_]:
            verdict = subject.failed(first)
        case _ if len(declined) == len(each.on_roads):
            verdict = "unsupported"
            shown = [Unoffered(declined[0].text if declined else "it has no roads")]
        case _:
            verdict = subject.graded(first, (), is_open)
            shown = [*_notes(each)]
    judgement = Judgement(
        case,
        subject.name,
        verdict,
        tuple(shown),
        inputs=each.inputs.size + (each.swept.asked if each.swept is not None else 0),
        reproduction=script,
        check=each.name,
        further=tuple(further),
    )
    return _digested(each).added_to(judgement)


def _digested(each: _AskedChain) -> AnswerDigester:
    """Digest the answers step by step, and those of each road that was asked all inputs."""
    digester = AnswerDigester()
    digester.add({"": each.inputs}, Answered(each.alone))
    for on in each.on_roads:
        # Answers decide which inputs a road is asked otherwise; so a digest would depend on them.
        if on.picked.size == each.inputs.size:
            digester.add({on.road: each.inputs}, on.reply)
            if isinstance(on.reply, Answered):
                digester.show(_moved_examples(each, on, on.reply.value))
    return digester


def _moved_examples(each: _AskedChain, on: OnRoad, answers: Bits) -> Iterator[AnswerExample]:
    """Yield some inputs to which a road, or the direct cast, answers otherwise than the steps."""
    source, target = format_named(each.chain.source), format_named(each.chain.target)
    differs = answers != each.alone
    if each.direct is not None:
        differs |= each.direct != each.alone
    for at in spread(differs):
        given, got = int(each.inputs[at]), int(answers[at])
        words = f"{datum_with_value(source, given)} on {on.road}"
        yield AnswerExample(words, datum_with_value(target, got))


def _alone(
    chains: Mapping[str, Chain], broken: Mapping[str, str]
) -> Ask[dict[str, _AskedChain | Unoffered]]:
    """Request each chain's steps one by one, and its direct cast; return, by check, what was asked.

    ``broken`` has a message for each dtype whose bits the adapter changes. A chain over such a
    dtype, or with a step that gets no answer, is ``Unoffered``.
    """
    inputs = {name: chain_inputs(chain.dtypes) for name, chain in chains.items()}
    now: dict[str, Bits] = dict(inputs)
    found: dict[str, _AskedChain | Unoffered] = {
        name: Unoffered(f"the adapter, not the framework: {dtype}: {broken[dtype]}")
        for name, chain in chains.items()
        for dtype in chain.dtypes
        if dtype in broken
    }
    direct: dict[str, Reply] = {}
    for number in range(max(len(chain.steps) for chain in chains.values())):
        going = {n: c for n, c in chains.items() if n not in found and number < len(c.steps)}
        # Equal inputs are one array (`chain_inputs` keeps them), so that its identity is a key.
        wanted: dict[tuple[Case, int], Cast] = {}
        for name, chain in going.items():
            step = chain.steps[number]
            wanted.setdefault((step, id(now[name])), Cast(step, now[name]))
            if number == 0:
                wanted.setdefault((chain.direct, id(now[name])), Cast(chain.direct, now[name]))
        replies = dict(zip(wanted, (yield [*wanted.values()]), strict=True))
        before = dict(now)
        for name, chain in going.items():
            if number == 0:
                direct[name] = replies[chain.direct, id(before[name])]
            match replies[chain.steps[number], id(before[name])]:
                case Answered(answer):
                    now[name] = answer
                case missing:
                    found[name] = Unoffered(f"{chain.steps[number].id} alone: {missing.text}")
    for name, chain in chains.items():
        if name not in found:
            reply = direct[name]
            by_one = reply.value if isinstance(reply, Answered) else None
            found[name] = _AskedChain(name, chain, inputs[name], now[name], by_one)
    return {name: found[name] for name in chains}


def _on_road(asked: Sequence[_AskedChain], road: str, *, is_first: bool) -> Ask[None]:
    """Request chains on a road, and append the replies to their ``on_roads``.

    Further roads than the first get the ``telling`` inputs. If a program of several chains gets no
    answers, each of them is requested alone.
    """
    picked = [np.arange(each.inputs.size) if is_first else each.telling for each in asked]
    programs: list[list[int]] = [[]]
    size = 0
    for number, where in enumerate(picked):
        size += where.size
        if size > MOST_TOGETHER and programs[-1]:
            programs.append([])
            size = where.size
        programs[-1].append(number)

    def request(numbers: Sequence[int]) -> CastChains:
        some = [asked[number] for number in numbers]
        company = Company(tuple(each.chain for each in some), road)
        inputs = [asked[number].inputs[picked[number]] for number in numbers]
        return CastChains(some[0].chain.steps[0], company, inputs)

    waiting = [each for each in programs if each]
    while waiting:
        replies = yield [request(each) for each in waiting]
        again: list[list[int]] = []
        for numbers, reply in zip(waiting, replies, strict=True):
            match reply:
                case Answered(answers):
                    for number, answer in zip(numbers, answers, strict=True):
                        own = OnRoad(road, picked[number], Answered(answer))
                        asked[number].on_roads.append(own)
                case missing if len(numbers) == 1:
                    own = OnRoad(road, picked[numbers[0]], missing)
                    asked[numbers[0]].on_roads.append(own)
                case _:
                    again += [[number] for number in numbers]
        waiting = again


def _problems(each: _AskedChain) -> tuple[list[Problem], bool]:
    """Return a chain's problems, ordered by ``_joined``, and whether a road changes open answers.

    A road does so if its answers differ from those of the steps alone, and all are allowed.
    """
    problems: list[Problem] = []
    is_open = False
    for number, (road, picked, reply) in enumerate(each.on_roads):
        if number == 0 and each.swept is not None and each.swept.has_problems:
            problems += _swept_problems(each, each.swept, road)
            continue
        if not isinstance(reply, Answered):
            problems += _missing(road, reply)
            continue
        moved = np.zeros(each.inputs.size, bool)
        moved[picked] = reply.value != each.alone[picked]
        if not moved.any():
            continue
        answers = each.alone.copy()
        answers[picked] = reply.value
        wrong = moved & ~each.everywhere(each.composed.allows(answers.astype(np.uint64)))
        if wrong.any():
            problems.append(_wrong(each, road, picked, answers, wrong))
        else:
            is_open = True
    return [*_joined(problems)], is_open


def _swept_problems(each: _AskedChain, swept: ChainSweep, road: str) -> Iterator[Problem]:
    """Yield the problems that a sweep found on a road.

    The sweep includes all inputs that were requested on that road before.
    """
    if swept.missing is not None:
        yield from _missing(road, swept.missing)
    if swept.inputs.size:
        found = _AskedChain(each.name, each.chain, swept.inputs, swept.alone, None)
        every = np.arange(swept.inputs.size)
        wrong = np.ones(swept.inputs.size, bool)
        problem = _wrong(found, road, every, swept.answers, wrong)
        yield replace(problem, wrong=swept.wrong, inputs=swept.asked)


def _missing(road: str, reply: NoAnswer) -> Iterator[Problem]:
    match reply:
        case Raised(error):
            yield Refused(type(error).__name__, reply.text, where=f"on {road}")
        case Crashed():
            yield Died(f"{reply.text} on {road}")
        case Malformed(text):
            yield WrongForm(text, where=f"on {road}")


def _wrong(
    each: _AskedChain, road: str, picked: NDArray[np.intp], answers: Bits, wrong: NDArray[np.bool_]
) -> WrongEnd:
    source, target = format_named(each.chain.source), format_named(each.chain.target)
    moved = answers != each.alone
    weak = each.everywhere(each.composed.is_recommended)
    required = wrong & ~weak
    worst = index_of_simplest(source, each.inputs, required if required.any() else wrong)
    is_right = ~moved & each.everywhere(each.composed.allows(answers.astype(np.uint64)))
    right = picked[is_right[picked]]
    told = np.union1d(np.flatnonzero(moved), right[:: right.size // MOST_RIGHT + 1])
    given, got = datum_of(each.inputs[worst]), datum_of(answers[worst])
    assert isinstance(given, int)
    allowed = tuple(ends_words(target, ends(each.chain.rulings, given)))
    return WrongEnd(
        RULE,
        "",
        "required" if required.any() else "recommended",
        chain=each.chain.id,
        roads=(road,),
        given=datum_with_value(source, given),
        got=datum_with_value(target, got),
        allowed=allowed,
        code=source.hexadecimal(given),
        wrong=int(np.count_nonzero(wrong)),
        inputs=picked.size,
        followed=followed_paths(
            each.chain,
            each.inputs[told],
            answers[told],
            None if each.direct is None else each.direct[told],
            moved[told],
        ),
    )


def _joined(problems: Sequence[Problem]) -> Iterator[Problem]:
    """Join wrong ends that are alike on several roads, and yield the required ones first.

    A wrong end is a ``WrongEnd``. Two are alike if the same mechanisms explain them, or if none do
    and they show the same input and answer. Of other problems, one of each class is yielded, after
    these.
    """
    wrong: dict[Any, WrongEnd] = {}
    others: dict[str, Problem] = {}
    for each in problems:
        if isinstance(each, WrongEnd):
            # Further roads are asked fewer inputs, so that their simplest one may be another.
            key = each.followed or (each.given, each.got)
            known = wrong.get(key)
            wrong[key] = each if known is None else replace(known, roads=known.roads + each.roads)
        else:
            others.setdefault(type(each).__name__, each)
    yield from sorted(wrong.values(), key=lambda each: each.level != "required")
    yield from others.values()


def _notes(each: _AskedChain) -> Iterator[Problem]:
    """Yield a note on each road that the backend declines, and one on roads that change answers.

    The changed answers are allowed ones.
    """
    changed: list[tuple[OnRoad, NDArray[np.intp]]] = []
    for on in each.on_roads:
        match on.reply:
            case Declined(text):
                yield Note(f"not asked on {on.road}: {text}")
            case Answered(answer):
                moved = np.flatnonzero(answer != each.alone[on.picked])
                changed += [(on, moved)] if moved.size else []
    if changed:
        others = len(changed) - 1
        more = f"; so it is on {others} more roads" if others else ""
        yield Note(_open_change(each, *changed[0]) + more)


def _open_change(each: _AskedChain, on: OnRoad, moved: NDArray[np.intp]) -> str:
    road, picked, reply = on
    assert isinstance(reply, Answered)
    source, target = format_named(each.chain.source), format_named(each.chain.target)
    among = np.zeros(picked.size, bool)
    among[moved] = True
    at = index_of_simplest(source, each.inputs[picked], among)
    given, there = datum_of(each.inputs[picked[at]]), datum_of(each.alone[picked[at]])
    return (
        f"where the document is open, {moved.size} of {picked.size} inputs get another answer on "
        f"{road} than step by step: {datum_with_value(source, given)} gives "
        f"{datum_text(target, datum_of(reply.value[at]))}, not {datum_text(target, there)}"
    )


def _script(subject: Subject, each: _AskedChain, wrong: WrongEnd) -> Ask[str]:
    """Return the adapter's script for the simplest input of a wrong end.

    It is empty if the adapter writes none, or if the run hides scripts of documents that the
    backend does not claim.
    """
    if subject.settings.hides_unclaimed and not subject.claims(each.chain.steps[0]):
        return ""
    bits = np.array([int(wrong.code, 16)], format_named(each.chain.source).storage)
    company = Company((each.chain,), wrong.roads[0])
    match (yield from ask(Script(CastChains(each.chain.steps[0], company, [bits])))):
        case Answered(text):
            return plain_text(text)
    return ""
