"""Turns the words for outcomes in documents and house rules into outcomes of a target."""

from __future__ import annotations

from functools import cache

from specs.behaviors import reductions
from specs.errors import DocumentError
from specs.formats import Format
from specs.model.vocabulary import CODE_WORDS, NAN_SIGNS, ROUNDINGS
from specs.outcomes import (
    Anything,
    Behaves,
    Exactly,
    Nan,
    Outcome,
    ParsesTo,
    PlainText,
    Rejected,
    Round,
    Same,
    Value,
    Wrap,
)

FIXED_OUTCOMES: dict[str, Outcome] = {
    "value": Value(),
    "wrap": Wrap(),
    "same": Same(),
    "plain-text": PlainText(reads_back=False),
    "plain-value": PlainText(reads_back=True),
    "parses-to": ParsesTo(),
    "error": Rejected(),
    "unspecified": Anything(),
}
"""The outcome words that mean the same for every target."""


@cache
def outcome_of(word: str, target: Format) -> Outcome:
    """The outcome that a word means for a target; raise DocumentError if the target lacks it."""
    if word in ROUNDINGS:
        return Round(ROUNDINGS[word])
    if word in NAN_SIGNS:
        if not target.nan_codes:
            raise DocumentError(f"{target.name} has no NaN")
        if word != "nan" and not target.has_signed_nan:
            raise DocumentError(f"a NaN of {target.name} has no sign")
        return Nan(NAN_SIGNS[word])
    if word in CODE_WORDS:
        if word in ("inf", "-inf") and not target.entry.infinity:
            raise DocumentError(f"{target.name} has no infinity")
        if word == "zero" and target.entry.zero == "none":
            raise DocumentError(f"{target.name} has no zero")
        if word == "-zero" and target.entry.zero != "signed":
            raise DocumentError(f"{target.name} has no negative zero")
        return Exactly(CODE_WORDS[word](target))
    if word in reductions():
        return Behaves(word)
    if word in FIXED_OUTCOMES:
        return FIXED_OUTCOMES[word]
    code = int(word, 16)
    if code > target.mask:
        raise DocumentError(f"`{word}` is wider than {target.name}")
    return Exactly(code)
