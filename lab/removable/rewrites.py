"""Judges what optimizers make of chains, by the text of their rules and by the models they write.

Each chain that a rule rewrites is compared with what the rule leaves of it, for every input
(``removable_casts.replaced``). What an installed optimizer leaves is read from its model, so that
no kernel takes part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

from conformance.extras.removable_casts.judged_rewrites import Rewritten
from conformance.extras.removable_casts.removable_casts import RemovableCast
from conformance.extras.removable_casts.removable_page import answer_of
from conformance.extras.removable_casts.rewrites import left_by, rewrites
from lab.removable.casts import replaced
from oracles.adapters.onnx_optimizers import REWRITERS, OnnxOptimizer
from oracles.protocol import NotInstalled, Unsupported
from specs.cases import Case
from specs.chains import Chain, Company, chains_of

EDITION = "onnx-cast:25"
"""The edition by which installed optimizers of ONNX models are judged."""
TOGETHER = 64
"""Chains in one model."""
AT_ONCE = 32
"""Questions that a process gets at a time."""

Left = tuple[Case, ...]


@dataclass(frozen=True)
class Changes:
    """The chains that a rule or an optimizer changes, and the casts that it leaves of each.

    ``asked`` counts all chains that were tried, ``refused`` those of which the optimizer makes no
    model.
    """

    name: str
    edition: str
    asked: int
    left: Mapping[Chain, Left]
    refused: int = 0

    def judged(self, decided: Mapping[tuple[Chain, Left], RemovableCast]) -> Rewritten:
        """Count the changes by the answer to each, and add the most telling wrong one."""
        found = [decided[item] for item in self.left.items()]
        wrong = [each for each in found if each.removable == "never"]
        wrong.sort(key=_tellingness)
        return Rewritten(
            name=self.name,
            edition=self.edition,
            asked=self.asked,
            refused=self.refused,
            answers=dict(Counter(map(answer_of, found))),
            weaker=sum(each.strictness == "weaker" for each in found),
            worst=wrong[0] if wrong else None,
        )


def _tellingness(found: RemovableCast) -> tuple[bool, bool, int]:
    """A sort key: required contradictions, then those with an answer instead, then short chains."""
    assert found.counterexample is not None
    has_answer = "anything" not in found.counterexample.instead
    return found.level != "required", not has_answer, len(found.chain)


def changes_by_text() -> Iterator[Changes]:
    """Yield the chains that each shipped rewrite changes, if it names an edition."""
    every = rewrites()
    for name, rule in every.rewrites.items():
        if rule.edition:
            document, _, version = rule.edition.partition(":")
            chains = list(chains_of(document, version, has_all_modes=False))
            left = {chain: left_by(rule, chain) for chain in chains if every.applies(rule, chain)}
            yield Changes(name, rule.edition, len(chains), left)


def changes_of_installed() -> Iterator[Changes]:
    """Yield the changes that each installed optimizer of ONNX models makes at each level."""
    document, _, version = EDITION.partition(":")
    chains = list(chains_of(document, version, has_all_modes=False))
    for rewriter in REWRITERS:
        try:
            optimizer = OnnxOptimizer(rewriter)
        except NotInstalled:
            continue
        for level in rewriter.levels:
            left, refused = paths_left(optimizer, chains, f"level:{level}")
            changed = {chain: casts for chain, casts in left.items() if casts != chain.steps}
            name = f"{optimizer.name} {optimizer.version}, level:{level}"
            yield Changes(name, EDITION, len(chains), changed, refused)


def paths_left(
    optimizer: OnnxOptimizer, chains: Sequence[Chain], road: str
) -> tuple[dict[Chain, Left], int]:
    """Ask an optimizer what it leaves of each chain; count those for which it makes no model."""
    left: dict[Chain, Left] = {}
    waiting = [chains[at : at + TOGETHER] for at in range(0, len(chains), TOGETHER)]
    refused = 0
    while waiting:
        some = waiting.pop()
        try:
            left |= zip(some, optimizer.left(Company(tuple(some), road)), strict=True)
        except Unsupported:
            if len(some) == 1:
                refused += 1
            else:
                half = len(some) // 2
                waiting += [some[:half], some[half:]]
    return left, refused


Question = tuple[Chain, Left]


def questions_of(changes: Iterable[Changes]) -> list[Question]:
    """The different questions, those of one pair of dtypes together, which share their inputs."""
    questions = {question for each in changes for question in each.left.items()}
    return sorted(questions, key=lambda each: (each[0].dtypes, str(each)))


def decided(questions: Sequence[Question], jobs: int) -> Iterator[tuple[Question, RemovableCast]]:
    """Decide questions in ``jobs`` processes; yield each with its answer, in their order."""
    parts = [questions[at : at + AT_ONCE] for at in range(0, len(questions), AT_ONCE)]
    with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
        for part, found in zip(parts, pool.map(_decided, parts), strict=True):
            yield from zip(part, found, strict=True)


def _decided(questions: Sequence[Question]) -> list[RemovableCast]:
    return [replaced(chain, left) for chain, left in questions]
