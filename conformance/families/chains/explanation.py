"""`castigate explain` of a chain of casts: each step, the allowed results, and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from conformance.families.cast.explanation import read_input
from conformance.families.cast.pair_comparison import (
    ANYTHING,
    HEADING,
    LEFT_OPEN,
    Line,
    document_lines,
    either_words,
    given_words,
    is_foreign,
    strictest,
)
from conformance.families.chains.ends_words import ends_words
from conformance.families.chains.program import CastChains
from conformance.judging.asking import Ask, ask
from conformance.judging.values import no_answer
from oracles.backend.replies import Answered, Crashed, Declined, Malformed, Raised
from oracles.reference import expect_by_exact
from oracles.reference.chain_ends import LEVELS, ends
from reports.counterexample.drawing import aligned_rows, allowed_columns, datum_columns
from reports.findings.finding_text import OUTCOME_WORDS, datum_words
from reports.grading.allowed_answers import describe_allowed
from reports.grading.divergences import datum_of
from specs.chains import Chain, Company
from specs.formats import format_named
from specs.ruling import ruling


def explain_chain(chain: Chain, word: str) -> dict[str, Any]:
    """Explain one input of a chain, as data for JSON, without the ``answers`` of backends.

    The keys are ``chain``, ``input``, ``level``, ``steps`` (see ``_steps``), ``allowed`` and, for
    what the direct cast allows, ``direct``. Raise CastigateError if the word is no value of the
    source.
    """
    given = read_input(chain.rulings[0], word)
    assert isinstance(given, int)
    source, target = format_named(chain.source), format_named(chain.target)
    allowed = ends(chain.rulings, given)
    return {
        "chain": chain.id,
        "input": source.hexadecimal(given),
        "level": allowed.level,
        "steps": [*_steps(chain, given)],
        "allowed": [*ends_words(target, allowed)],
        "direct": [*ends_words(target, ends([ruling(chain.direct)], given))],
    }


def _steps(chain: Chain, given: int) -> Iterator[dict[str, Any]]:
    """Yield the ``case``, ``rule``, ``level`` and ``clause`` of each step, and what is ``allowed``.

    The first step that does not allow exactly one pattern is the last.
    """
    codes = [given]
    for step, rules in zip(chain.steps, chain.rulings, strict=True):
        allowed = expect_by_exact.allow(rules, codes[0])
        yield {
            "case": step.id,
            "rule": allowed.branch.rule,
            "level": allowed.branch.level,
            "clause": allowed.branch.clause,
            "allowed": [*describe_allowed(rules, allowed, codes[0])],
        }
        codes = [*allowed.codes]
        if len(codes) != 1:
            return


def ask_roads(chain: Chain, explained: Mapping[str, Any], roads: Sequence[str]) -> Ask[Any]:
    """Request an explained input of a chain on roads of a backend; return the answers by road.

    ``explained`` are the data of ``explain_chain``. An answer is a hex pattern, or the data of
    ``no_answer``.
    """
    target = format_named(chain.target)
    bits = np.array([int(explained["input"], 16)], format_named(chain.source).storage)
    found: dict[str, Any] = {}
    for road in roads:
        match (yield from ask(CastChains(chain.steps[0], Company((chain,), road), [bits]))):
            case Answered([answer]):
                code = datum_of(answer[0])
                assert isinstance(code, int)
                found[road] = target.hexadecimal(code)
            case Declined() | Raised() | Malformed() | Crashed() as missing:
                found[road] = no_answer(missing)
    return found


def explain_chain_lines(chain: Chain, explained: dict[str, Any]) -> Iterator[str]:
    """Yield an explanation as lines; roads with the same answer share a line.

    ``explained`` has the keys of ``explain_chain``, and ``answers`` by backend and road.
    """
    source, target = format_named(chain.source), format_named(chain.target)
    given = int(explained["input"], 16)
    asked = f"{chain.id} of {given_words(chain.source, explained['input'])}"
    yield from HEADING.wrap(f"{asked}: {_said(chain, explained)}")
    yield f"  level     {explained['level']}"
    rows = [("input", datum_columns(source, given))]
    for step, found in zip(chain.steps, explained["steps"], strict=False):
        form = format_named(step.target)
        rows += [(f"to {step.target}", allowed_columns(form, each)) for each in found["allowed"]]
    rows += [("allowed", allowed_columns(target, each)) for each in explained["allowed"]]
    rows += [(_without(chain), allowed_columns(target, each)) for each in explained["direct"]]
    for name, answer in _answers_of_roads(explained["answers"]):
        is_code = answer.startswith("0x")
        rows.append((name, datum_columns(target, int(answer, 16)) if is_code else (answer, "", "")))
    yield from aligned_rows(rows)


def _answers_of_roads(answers: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each different answer of each backend, after a name for it.

    ``answers`` has them by backend and road. The name is the backend's, followed by a road if its
    roads give different answers.
    """
    for name, roads in answers.items():
        of_answer: dict[str, list[str]] = {}
        for road, answer in roads.items():
            of_answer.setdefault(str(answer), []).append(road)
        for answer, same in of_answer.items():
            yield _name(name, same, len(of_answer) > 1), answer


def _name(backend: str, roads: Sequence[str], has_others: bool) -> str:
    if not has_others:
        return backend
    more = f" and {len(roads) - 1} more" if len(roads) > 1 else ""
    return f"{backend} {roads[0]}{more}"


def chain_table_lines(
    chains: Sequence[Chain], explained: Sequence[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield what ``strictest_chain`` allows, then what each does, with and without the middle.

    Documents that say the same share a line, which also has the answers of backends. ``explained``
    has the explanation of the same input by each chain, with ``answers``.
    """
    first = strictest_chain(chains, explained)
    decisive = explained[[*chains].index(first)]
    asked = f"{' to '.join(first.dtypes)} of {given_words(first.source, decisive['input'])}"
    said = f"{_said(first, decisive)} by {_edition(first)}"
    if LEVELS.index(decisive["level"]) == 0:
        said = "no document decides it"
    direct = either_words(format_named(first.target), decisive["direct"])
    yield from HEADING.wrap(f"{asked}: {said}; {_without(first)} {direct}")
    lines: dict[Line, dict[str, list[str]]] = {}
    for chain, found in zip(chains, explained, strict=True):
        level = "open" if found["level"] == "unspecified" else found["level"]
        lines.setdefault(_line(chain, found), {}).setdefault(level, []).append(_edition(chain))
    for line in sorted(lines, key=lambda each: (strictest(lines[each]), each == LEFT_OPEN)):
        yield from document_lines(line, lines[line])


def _line(chain: Chain, explained: Mapping[str, Any]) -> Line:
    allowed, direct = (
        _allowed_words(chain.target, explained[key]) for key in ("allowed", "direct")
    )
    answers = [
        f"{datum_words(chain.target, answer) if answer.startswith('0x') else answer} from {name}"
        for name, answer in _answers_of_roads(explained["answers"])
    ]
    if allowed == direct == ANYTHING and not answers:
        return LEFT_OPEN
    return Line(f"{allowed}, {_without(chain)} {direct}", "; ".join(answers))


def _without(chain: Chain) -> str:
    return f"without {' and '.join(chain.dtypes[1:-1])}"


def _edition(chain: Chain) -> str:
    modes = dict.fromkeys(f"{n}:{value}" for step in chain.steps for n, value in step.modes)
    return " ".join([chain.edition, *modes])


def _said(chain: Chain, explained: Mapping[str, Any]) -> str:
    """Say as values which results a document requires or recommends, or that it decides none."""
    if LEVELS.index(explained["level"]) == 0:
        return "left open"
    allowed = either_words(format_named(chain.target), explained["allowed"])
    return f"{allowed} is {explained['level']}"


def strictest_chain(chains: Sequence[Chain], explained: Sequence[Mapping[str, Any]]) -> Chain:
    """Return the chain whose explanation has the strictest level; of several a usual one.

    Those of which also the direct cast is decided come first.
    """

    def rank(at: int) -> tuple[bool, int, bool]:
        found = explained[at]
        is_partial = found["direct"] == [ANYTHING]
        return is_partial, -LEVELS.index(found["level"]), is_foreign(chains[at].id)

    return chains[min(range(len(chains)), key=rank)]


def _allowed_words(target: str, allowed: Sequence[str]) -> str:
    return " or ".join(OUTCOME_WORDS.get(each) or datum_words(target, each) for each in allowed)
