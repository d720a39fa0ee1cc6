"""Says what a gate does not ask or judge, on its screen, in its certificate and in ``verify``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

from reports.case_patterns import INVARIANCES, kind_of_check
from reports.drawn_tensors import DRAWS, TIMES_FULL, TIMES_GATE, not_asked_words
from reports.findings.finding_text import counted
from reports.gate.policy import JudgedLevel, Policy, load_policy, shipped_policies
from reports.gate.policy_verdict import PolicyVerdict

CHAINS = (
    "not asked: chains of casts, and so what an optimizer makes of them;"
    " castigate run --chains asks them"
)


def left_out(policy: Policy, verdict: PolicyVerdict) -> Iterator[str]:
    """Yield a line for each kind of question that is not asked, or whose answers are not judged."""
    yield CHAINS
    if any(kind_of_check(each.check) == INVARIANCES for each in verdict.checks):
        yield not_asked_words(DRAWS * (TIMES_FULL if policy.tier == "full" else TIMES_GATE))
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


def policy_words(policy: Policy) -> str:
    """Return the name of a policy, and whether it ships with Castigate as it is.

    A name alone can be mistaken: `str1ct` looks like `strict`.
    """
    shipped = {load_policy(path).digest for path in shipped_policies().values()}
    return f"{policy.name} ({'as' if policy.digest in shipped else 'not one that'} castigate ships)"
