"""How each verdict and each change is told without colour: by a sign, and in a few words."""

from __future__ import annotations

from reports.diff.judgement import VERDICTS
from reports.findings.changes import CHANGES

MEANINGS = {
    "conforms": ("·", "every answer is allowed"),
    "violates": ("✕", "breaks a rule of a document that it claims"),
    "deviates": ("~", "breaks a recommended rule of a document that it claims"),
    "differs": ("≠", "breaks a rule of a document that it does not claim"),
    "open": ("○", "the document leaves every input open"),
    "unsupported": ("–", "the backend does not offer this"),
    "error": ("!", "an error came instead of an answer"),
    "crashed": ("†", "the backend's process died or fell silent"),
    "not-run": ("?", "was not run"),
}
CHANGE_SIGNS = dict(zip(CHANGES, "+±−∅", strict=True))
CODES: dict[str, str] = {verdict: str(place) for place, verdict in enumerate(VERDICTS)}
"""A verdict as one letter in data files."""
ABSENT = "."
"""The letter of a case that was not asked of a backend."""


def share(part: int, whole: int) -> str:
    """A share in per cent that says neither none nor all unless it is."""
    per_cent = round(100 * part / whole)
    if part and not per_cent:
        return "<1%"
    if part < whole and per_cent == 100:
        return ">99%"
    return f"{per_cent}%"
