"""Case ids and patterns of them, in the one language that ledgers and policies share.

In a pattern, ``*`` stands for any text within one part of an id, and ``**`` for any text with any
number of ``/`` in it. A part is what stands between two ``/``. A ledger needs only ``*``, because
one of its patterns may stand for at most ``MAX_CASES`` cases.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations

from specs.editions import editions
from specs.loader import documents

WITHIN_PART = "*"
"""The wildcard for any text without ``/``."""
EVERYTHING = "**"
"""The wildcard for any text; alone, the pattern of all cases."""
MAX_CASES = 40
"""Cases that one pattern of a ledger may stand for: more cannot be checked by eye."""
INVARIANCES, VARIANTS = "invariances", "variants"
"""Stand for the document in the names of checks that concern a dtype pair in every document."""


def pair_checks(pair: str, first_road: str) -> tuple[str, ...]:
    """The names of a pair's checks; two roads are compared where there is another ``first_road``.

    >>> pair_checks("float32/float16", "jax")
    ('invariances/float32/float16', 'variants/jax/float32/float16')
    """
    names = [f"{INVARIANCES}/{pair}"]
    return (*names, f"{VARIANTS}/{first_road}/{pair}") if first_road else (*names,)


@cache
def _expression(pattern: str) -> re.Pattern[str]:
    wildcards = {EVERYTHING: ".*", WITHIN_PART: "[^/]*"}
    pieces = re.split(r"(\*\*|\*)", pattern)
    return re.compile("".join(wildcards.get(piece, re.escape(piece)) for piece in pieces))


def matches(pattern: str, case: str) -> bool:
    """Whether a pattern stands for a case id."""
    return _expression(pattern).fullmatch(case) is not None


def any_matches(patterns: Iterable[str], case: str) -> bool:
    """Whether one of the patterns stands for a case id."""
    return any(matches(pattern, case) for pattern in patterns)


@cache
def ids_of(document: str) -> dict[str, None]:
    """The ids of a document's cases, in their order; none for an unknown document."""
    if document == INVARIANCES:
        return dict.fromkeys(_pair_names())
    if document not in documents():
        return {}
    return {
        case.id: None for edition in editions(documents()[document]) for case in edition.cases()
    }


def _pair_names() -> Iterator[str]:
    """The names of the dtype pairs that some document casts."""
    for document in documents():
        if documents()[document].entry.bitcast is None:
            for source, target in _ids_by_pair(document):
                yield f"{INVARIANCES}/{source}/{target}"


def all_ids() -> list[str]:
    """Every case of every document, and every dtype pair."""
    return [name for document in (*documents(), INVARIANCES) for name in ids_of(document)]


def is_known(name: str) -> bool:
    """Whether a name is that of a case or of a dtype pair, so that a ledger may list it."""
    return name in ids_of(document_of(name))


@cache
def _ids_by_pair(document: str) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for name in ids_of(document):
        _, source, target, *_ = name.split("/")
        found.setdefault((source, target), []).append(name)
    return found


def document_of(name: str) -> str:
    """The document's name in a case id or a pattern."""
    return name.partition("/")[0].partition(":")[0]


def expand(pattern: str) -> list[str]:
    """The cases of one document that a pattern stands for; the document may hold no wildcard."""
    document = document_of(pattern)
    if WITHIN_PART not in pattern:
        return [pattern] if pattern in ids_of(document) else []
    _, source, target, *_ = [*pattern.split("/"), "", ""]
    # Without a wildcard in the dtypes, only the cases of one pair need to be matched.
    one_pair = EVERYTHING not in pattern and WITHIN_PART not in source + target
    candidates = _ids_by_pair(document).get((source, target), ()) if one_pair else ids_of(document)
    return [name for name in candidates if matches(pattern, name)]


def compress(cases: Iterable[str]) -> list[str]:
    """A short list of patterns and ids that stands for exactly these cases.

    The pattern that covers most of what is left is taken first, so that the list is not always the
    shortest, but always the same for the same cases.
    """
    left = set(cases)
    covers: dict[str, set[str]] = {}
    for name in left:
        for pattern in _patterns(name):
            covers.setdefault(pattern, set()).add(name)
    fitting = {
        pattern: cover
        for pattern, cover in covers.items()
        if 1 < len(cover) <= MAX_CASES and len(cover) == _sizes(document_of(pattern))[pattern]
    }
    chosen: list[str] = []
    while fitting:
        best = min(
            fitting,
            key=lambda each: (-len(fitting[each] & left), each.count(WITHIN_PART), each),
        )
        if len(fitting[best] & left) < 2:
            break
        chosen.append(best)
        left -= fitting.pop(best)
    return sorted([*chosen, *left], key=natural_order)


@cache
def _sizes(document: str) -> Counter[str]:
    """How many cases of a document each pattern stands for."""
    return Counter(pattern for name in ids_of(document) for pattern in _patterns(name))


def _patterns(name: str) -> Iterator[str]:
    """An id with a wildcard for some of its version, its dtypes and the values of its modes."""
    parts = [part.partition(":") for part in name.split("/")]
    for count in range(1, len(parts) + 1):
        for wild in combinations(range(len(parts)), count):
            yield "/".join(
                (f"{head}:{WITHIN_PART}" if colon else WITHIN_PART)
                if index in wild
                else head + colon + tail
                for index, (head, colon, tail) in enumerate(parts)
            )


def natural_order(name: str) -> list[tuple[int, str]]:
    """The key that sorts ids with the numbers in them by value: version 9 before version 10."""
    return [
        (int(piece), "") if piece.isdigit() else (-1, piece)
        for piece in re.findall(r"\d+|\D+", name)
    ]
