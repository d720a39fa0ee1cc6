"""`castigate explain` of a chain of casts: each step, the allowed results, and the answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from conformance.families.cast.explanation import read_input
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
from reports.outputs.table import in_columns
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
    yield f"{explained['chain']}"
    yield f"  level     {explained['level']}"
    rows = [("input", datum_columns(source, given))]
    for step, found in zip(chain.steps, explained["steps"], strict=False):
        form = format_named(step.target)
        rows += [(f"to {step.target}", allowed_columns(form, each)) for each in found["allowed"]]
    rows += [("allowed", allowed_columns(target, each)) for each in explained["allowed"]]
    without = f"without {' and '.join(chain.dtypes[1:-1])}"
    rows += [(without, allowed_columns(target, each)) for each in explained["direct"]]
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
    """Yield a heading, then for each chain a line with its level and what it allows.

    The line also has what the direct cast allows, and below it stand the answers of backends.
    ``explained`` has the explanation of the same input by each chain, with ``answers``.
    """
    path = " to ".join(chains[0].dtypes)
    yield f"{path} of {datum_words(chains[0].source, explained[0]['input'])}"
    without = f"without {' and '.join(chains[0].dtypes[1:-1])}"
    rows = []
    for chain, found in zip(chains, explained, strict=True):
        modes = dict.fromkeys(f"{n}:{value}" for step in chain.steps for n, value in step.modes)
        level = "open" if found["level"] == "unspecified" else found["level"]
        allowed, direct = (
            _allowed_words(chain.target, found[key]) for key in ("allowed", "direct")
        )
        rows.append((" ".join([chain.edition, *modes]), level, allowed, f"{without} {direct}"))
    for line, chain, found in zip(in_columns(rows), chains, explained, strict=True):
        yield f"  {line}"
        for name, answer in _answers_of_roads(found["answers"]):
            is_code = answer.startswith("0x")
            yield f"    {datum_words(chain.target, answer) if is_code else answer} from {name}"


def strictest_chain(chains: Sequence[Chain], explained: Sequence[Mapping[str, Any]]) -> Chain:
    """Return the chain whose explanation has the strictest level; of several the first."""
    ranks = [LEVELS.index(found["level"]) for found in explained]
    return chains[ranks.index(max(ranks))]


def _allowed_words(target: str, allowed: Sequence[str]) -> str:
    return " or ".join(OUTCOME_WORDS.get(each) or datum_words(target, each) for each in allowed)
