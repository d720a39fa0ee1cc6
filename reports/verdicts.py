"""The verdicts: which exist, their order, and the sets of them that other modules ask about."""

from __future__ import annotations

from typing import Literal, get_args

Verdict = Literal[
    "conforms",
    "violates",
    "deviates",
    "differs",
    "open",
    "unsupported",
    "error",
    "crashed",
    "not-run",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Every verdict, in the order of table columns and of the codes in data files."""

VERDICT_OF_LEVEL: dict[str, Verdict] = {"required": "violates", "recommended": "deviates"}
"""The verdict on a backend that breaks a rule of this level in a document that it claims."""
BREAKS_RULE: tuple[Verdict, ...] = ("violates", "deviates")
"""A rule of a claimed document is broken."""
NO_ANSWER: tuple[Verdict, ...] = ("error", "crashed")
"""An answer was due and none came, so no rule was compared."""
NOT_RUN: tuple[Verdict, ...] = ("unsupported", "not-run")
"""The backend declined the case, or was never asked: nothing was judged."""
FAILING: tuple[Verdict, ...] = (*BREAKS_RULE, *NO_ANSWER)
"""A run with one of these exits with code 1."""
WRONG: tuple[Verdict, ...] = (*BREAKS_RULE, "differs", *NO_ANSWER)
"""Verdicts of which fewer are better. `differs` is among them, although it never fails a run."""
BY_SEVERITY: tuple[Verdict, ...] = (
    "open",
    "conforms",
    "differs",
    "deviates",
    "violates",
    "not-run",
    "unsupported",
    "error",
    "crashed",
)
"""From the best to the worst: the worst verdict on a part of a case's inputs is the case's."""

VERDICT_DIGITS: dict[str, str] = {verdict: str(index) for index, verdict in enumerate(VERDICTS)}
"""A verdict as one character in data files."""
