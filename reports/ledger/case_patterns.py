"""Case ids with wildcards: ``*`` stands for whatever a part of an id may be."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations

from specs.editions import editions
from specs.loader import documents

WIDEST = 40
"""Cases that one pattern may stand for: more cannot be checked by eye."""
ANY = "*"


PAIRS = "invariances"
"""What stands for a document in the names of what is asked of a pair, whatever document asks."""


@cache
def ids_of(document: str) -> dict[str, None]:
    """The ids of a document's cases, in their order; none of an unknown document."""
    if document == PAIRS:
        return dict.fromkeys(_pairs())
    if document not in documents():
        return {}
    return {
        case.id: None for edition in editions(documents()[document]) for case in edition.cases()
    }


def _pairs() -> Iterator[str]:
    """The names of pairs that some document casts."""
    for document in documents():
        if documents()[document].entry.bitcast is None:
            for source, target in _by_pair(document):
                yield f"{PAIRS}/{source}/{target}"


def all_ids() -> list[str]:
    """Every case of every document, and every pair."""
    return [name for document in (*documents(), PAIRS) for name in ids_of(document)]


def is_known(name: str) -> bool:
    """Whether a ledger may list a name."""
    return name in ids_of(document_of(name))


@cache
def _by_pair(document: str) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for name in ids_of(document):
        _, source, target, *_ = name.split("/")
        found.setdefault((source, target), []).append(name)
    return found


def document_of(name: str) -> str:
    """The document of a case id, or of a pattern of them."""
    return name.partition("/")[0].partition(":")[0]


def expanded(pattern: str) -> list[str]:
    """The cases that a pattern stands for."""
    document = document_of(pattern)
    if ANY not in pattern:
        return [pattern] if pattern in ids_of(document) else []
    _, source, target, *_ = [*pattern.split("/"), "", ""]
    wild = ANY in source + target
    among = ids_of(document) if wild else _by_pair(document).get((source, target), ())
    regex = re.compile(re.escape(pattern).replace(re.escape(ANY), "[^/]*"))
    return [name for name in among if regex.fullmatch(name)]


def compressed(cases: Iterable[str]) -> list[str]:
    """The fewest patterns found that stand for exactly these cases, the widest first taken."""
    left = set(cases)
    covers: dict[str, set[str]] = {}
    for name in left:
        for pattern in _patterns(name):
            covers.setdefault(pattern, set()).add(name)
    fitting = {
        pattern: cover
        for pattern, cover in covers.items()
        if 1 < len(cover) <= WIDEST and len(cover) == _counts(document_of(pattern))[pattern]
    }
    chosen: list[str] = []
    while fitting:
        best = min(fitting, key=lambda each: (-len(fitting[each] & left), each.count(ANY), each))
        if len(fitting[best] & left) < 2:
            break
        chosen.append(best)
        left -= fitting.pop(best)
    return sorted([*chosen, *left], key=natural)


@cache
def _counts(document: str) -> Counter[str]:
    """How many cases each pattern stands for."""
    return Counter(pattern for name in ids_of(document) for pattern in _patterns(name))


def _patterns(name: str) -> Iterator[str]:
    """An id with some of its version, its dtypes and its modes' values left open."""
    parts = [part.partition(":") for part in name.split("/")]
    for count in range(1, len(parts) + 1):
        for places in combinations(range(len(parts)), count):
            yield "/".join(
                (f"{head}:{ANY}" if colon else ANY) if place in places else head + colon + tail
                for place, (head, colon, tail) in enumerate(parts)
            )


def natural(name: str) -> list[tuple[int, str]]:
    """What ids are sorted by: numbers by their value."""
    return [
        (int(word), "") if word.isdigit() else (-1, word) for word in re.findall(r"\d+|\D+", name)
    ]
