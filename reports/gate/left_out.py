"""Says what a gate does not ask or judge, on its screen, in its certificate and in ``verify``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from reports.case_patterns import INVARIANCES, kind_of_check
from reports.drawn_tensors import DRAWS, FEW_SHAPES, TIMES_FULL, TIMES_GATE, not_asked_words
from reports.findings.cells import Cell
from reports.findings.finding_text import counted
from reports.gate.policy import JudgedLevel, Policy, PolicyEntry, load_policy, shipped_policies
from reports.gate.policy_verdict import PolicyVerdict
from reports.problems import Unoffered

CHAINS = (
    "not asked: chains of casts, and so what an optimizer makes of them;"
    " castigate run --chains asks them"
)


def left_out(policy: Policy, verdict: PolicyVerdict, left_open: str = "") -> Iterator[str]:
    """Yield a line for each kind of question that is not asked, or whose answers are not judged.

    ``left_open`` is the line on inputs that the documents leave open, if there are any.
    """
    if left_open:
        yield left_open
    yield CHAINS
    if policy.entry.cases:
        yield "not asked: cases of the documents that no entry under `cases` matches"
    if any(map(_is_drawn, verdict.checks)):
        times = TIMES_GATE if "quick" in policy.tiers else TIMES_FULL
        yield not_asked_words(DRAWS * times)
    if policy.entry.seed is not None:
        yield "not asked: inputs and tensors that the backend cannot know; the policy names a seed"
    if policy.entry.max_examples < PolicyEntry.model_fields["max_examples"].default:
        count = counted(policy.entry.max_examples, "random input")
        yield f"not asked: most inputs of wide sources; the policy draws {count} for each case"
    if opened := sum(each.verdict == "open" for each in verdict.cells):
        yield (
            f"not judged: {opened:,} of {counted(len(verdict.cells), 'case')}, in which the"
            " document leaves every answer open"
        )
    scopes = [("", policy.entry.levels)]
    scopes += [(" ".join(each.match), each.levels) for each in policy.entry.cases if each.levels]
    for patterns, levels in scopes:
        for level in get_args(JudgedLevel):
            if level not in levels:
                yield f"not judged: {level} rules{f' of {patterns}' if patterns else ''}"
    if passed_over := verdict.passed_over:
        yield (
            f"not judged: {counted(len(passed_over), 'case')} with wrong answers by such rules, "
            f"for instance {passed_over[0]}"
        )
    if unjudged := verdict.unjudged:
        name, text = next(iter(unjudged.items()))
        yield f"not judged: parts of {counted(len(unjudged), 'case')}, for instance {name}: {text}"


def _is_drawn(check: Cell) -> bool:
    """Whether tensors are drawn for a check: only invariances draw, and not if shapes are few."""
    is_few = any(isinstance(each, Unoffered) and each.reason == FEW_SHAPES for each in check.limits)
    return kind_of_check(check.check) == INVARIANCES and not is_few


def policy_words(policy: Policy) -> str:
    """Return the name of a policy, and whether it ships with Castigate as it is.

    A name alone can be mistaken: `str1ct` looks like `strict`.
    """
    shipped = {load_policy(path).digest for path in shipped_policies().values()}
    return f"{policy.name} ({'as' if policy.digest in shipped else 'not one that'} castigate ships)"
