"""Why mutants survive the tier quick, by kind; docs/trust.md says the same to users."""

from __future__ import annotations

from collections.abc import Mapping

UNKNOWN_REASON = "few inputs are wrong, and none of them is among those that stand in such tensors"
AFTER = ("after-a-refusal", "after-a-wider-source", "after-another-dtype", "after-another-case")
VIEWS = ("tensorflow-bitcast", "torch-view")
"""Documents of bitcasts that promise a view of the same memory."""
LAID = ("for-strides", "for-columns-first", "off-16-bytes")
"""Faults of bitcasts in tensors that lie otherwise."""
REASONS: Mapping[str, str] = {
    "*+behind-a-million@*": "rows of more than a million elements are asked at the tier full only",
    "*+after-a-minute@*": "a pair takes less than a minute, and no clock is varied",
    "*+at-every-1000th-call@*": "the tier quick makes a few hundred calls per pair",
    "*+of-one-pattern@*": "one pattern of a wide source is met by chance only",
    "*+of-one-pattern-in-a-million@*": "one pattern in a million is met by chance only",
    "*+of-111-to-111-elements@*": "lengths between blocks of 64 are asked at the tier full only",
    "*+of-384-to-384-elements@*": "lengths between blocks of 64 are asked at the tier full only",
    **dict.fromkeys(
        (f"*+{condition}@*" for condition in AFTER),
        "one seed in three asks casts before its own, one of each of four kinds",
    ),
    **dict.fromkeys(
        (f"gives-zeros-{laid}@{document}*" for laid in LAID for document in VIEWS),
        "where a document promises a view, layouts that a view may refuse are not asked",
    ),
    "*+*!": "a further mode or version is asked in seven tensors, which its name chooses",
}
"""Sentences by shell patterns of a mutant's name; the first that matches counts."""
