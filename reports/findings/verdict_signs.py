"""The sign and the meaning of each verdict and change, so that no page depends on color alone."""

from __future__ import annotations

from reports.changes.change import KINDS
from reports.changes.divergences import CHANGES

SIGNS_AND_MEANINGS = {
    "conforms": ("·", "every answer is allowed"),
    "violates": ("✕", "breaks a required rule of a document that the backend claims"),
    "deviates": ("~", "breaks a recommended rule of a document that the backend claims"),
    "differs": ("≠", "breaks a rule of a document that the backend does not claim"),
    "open": ("○", "the document leaves every input open"),
    "unsupported": ("–", "the backend does not support this case"),
    "error": ("!", "the backend returned an error or an invalid result"),
    "crashed": ("†", "the backend's process died or stopped answering"),
    "not-run": ("?", "the case was not run"),
}
KIND_SIGNS = dict(zip(KINDS, "▼▲±∅+", strict=True))
CHANGE_SIGNS = dict(zip(CHANGES, "+±−∅", strict=True))
NO_VERDICT = "."
"""The character of a case that a run does not have on a backend; `not-run` has another."""


def percentage(part: int, whole: int) -> str:
    """Write a share in percent; `0%` and `100%` stand for exactly none and all.

    ``whole`` must not be 0.
    """
    rounded = round(100 * part / whole)
    if part and not rounded:
        return "<1%"
    if part < whole and rounded == 100:
        return ">99%"
    return f"{rounded}%"
