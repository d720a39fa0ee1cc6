"""Case ids and patterns of them, in the one language that ledgers and policies share.

In a pattern, ``*`` stands for any text within one part of an id, ``**`` for any text with any
number of ``/`` in it, and ``{a,b}`` for what either of the two stands for. A part is what stands
between two ``/``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, reduce
from itertools import permutations, product
from math import prod

from specs.cases import JOINT
from specs.editions import editions
from specs.errors import CastigateError
from specs.house_rules import known_rules
from specs.loader import documents
from specs.plain_text import plain_line

WITHIN_PART = "*"
"""The wildcard for any text without ``/``."""
EVERYTHING = "**"
"""The wildcard for any text; alone, the pattern of all cases."""
UNMATCHED = {WITHIN_PART: "/", EVERYTHING: "\n"}
"""The character that each wildcard does not match."""
EITHER = re.compile(r"\{([^{}]*)\}")
"""Matches a choice of texts in a pattern, such as ``{a,b}``."""
PIECES = re.compile(r"(\*\*|\*|\{[^{}]*\})")
MAX_CHOICES = 1 << 16
"""The most texts that the choices of a pattern may expand to, which is more than all cases."""
SHOWN = 100
"""Characters of a pattern that an error shows."""
INVARIANCES, VARIANTS = "invariances", "variants"
"""Stand for the document in the names of checks that concern a dtype pair in every document."""
CHAINS = "chains"
"""Stands before the id of a chain of casts in the name of its check."""


def pair_checks(pair: str, first_variant: str) -> tuple[str, ...]:
    """Return the names of a pair's checks: invariances, and a comparison with ``first_variant``.

    An empty ``first_variant`` gives no comparison: the backend is itself the first variant.

    >>> pair_checks("float32/float16", "jax")
    ('invariances/float32/float16', 'variants/jax/float32/float16')
    """
    invariances = f"{INVARIANCES}/{pair}"
    return (invariances, f"{VARIANTS}/{first_variant}/{pair}") if first_variant else (invariances,)


def kind_of_check(check: str) -> str:
    """Return the name of a check without its dtypes, and that of a chain also without its modes.

    >>> kind_of_check("variants/jax/float32/float16")
    'variants/jax'
    >>> kind_of_check("chains/onnx-cast:25/float32/int32/bool")
    'chains/onnx-cast:25'
    """
    if is_chain_check(check):
        return "/".join(check.split("/")[:2])
    return check.rsplit("/", 2)[0]


def is_chain_check(name: str) -> bool:
    """Return whether a name is that of a check on a chain of casts."""
    return name.startswith(f"{CHAINS}/")


Piece = str | tuple[str, ...]
"""A wildcard, given by the character that it does not match, or a choice of texts or patterns."""


@cache
def _pieces(pattern: str) -> tuple[tuple[Piece, ...], tuple[str, ...]]:
    """Split a pattern into pieces; also return the texts that every matching id contains."""
    pieces: list[Piece] = []
    for text in filter(None, re.split(PIECES, pattern)):
        choice = EITHER.fullmatch(text)
        texts = choice[1].split(",") if choice else [text]
        piece = UNMATCHED.get(text) or tuple(texts)
        # Of two equal wildcards side by side the second adds nothing.
        if isinstance(piece, tuple) or [piece] != pieces[-1:]:
            pieces.append(piece)
    lone = [piece[0] for piece in pieces if isinstance(piece, tuple) and len(piece) == 1]
    return tuple(pieces), tuple(text for text in lone if WITHIN_PART not in text)


def matches(pattern: str, case: str) -> bool:
    """Return whether a pattern stands for a case id.

    The pattern is read once, with all positions in the id that the pieces read so far can reach. A
    regular expression would backtrack, and take far too long for a pattern like ``*a*a*a*a*b``.
    """
    _, contained = _pieces(pattern)
    if not all(text in case for text in contained):
        return False
    return len(case) in _places_after(pattern, [0], case)


def _places_after(pattern: str, places: Sequence[int], case: str) -> Sequence[int]:
    """Return the positions in ``case`` at which a match of a pattern can end.

    The match begins at one of the positions ``places``. Both lists are in rising order.
    """
    for piece in _pieces(pattern)[0]:
        if isinstance(piece, str):
            places = _after_wildcard(places, case, piece)
            continue
        ends: set[int] = set()
        for text in piece:
            if WITHIN_PART in text:
                ends.update(_places_after(text, places, case))
            else:
                ends.update(at + len(text) for at in places if case.startswith(text, at))
        places = sorted(ends)
    return places


def _after_wildcard(places: Sequence[int], case: str, unmatched: str) -> list[int]:
    """Return the positions in ``case`` at which a match of a wildcard can end.

    The match begins at one of the positions ``places``. Both lists are in rising order.
    ``unmatched`` is the character that the wildcard does not match.
    """
    reached: list[int] = []
    for at in places:
        if not reached or at > reached[-1]:
            end = case.find(unmatched, at)
            reached.extend(range(at, (len(case) if end < 0 else end) + 1))
    return reached


def alternatives(pattern: str) -> Iterator[str]:
    """Yield a pattern with each text of each choice, one choice at a time; without any, itself.

    >>> [*alternatives("{a,b}/{c,d}")]
    ['a/{c,d}', 'b/{c,d}', '{a,b}/c', '{a,b}/d']
    """
    choices = [*EITHER.finditer(pattern)]
    for choice in choices:
        for text in choice[1].split(","):
            yield f"{pattern[: choice.start()]}{text}{pattern[choice.end() :]}"
    if not choices:
        yield pattern


def any_matches(patterns: Iterable[str], case: str) -> bool:
    """Return whether one of the patterns stands for a case id."""
    return any(matches(pattern, case) for pattern in patterns)


@cache
def ids_of(document: str) -> dict[str, None]:
    """Return the ids of a document's cases as keys, in their order; empty if it is unknown.

    For ``INVARIANCES`` and ``CHAINS`` in place of a document, the keys are the names of these
    checks in all documents.
    """
    if document == INVARIANCES:
        return dict.fromkeys(_pair_names())
    if document == CHAINS:
        return dict.fromkeys(_chain_names())
    if document not in documents():
        return {}
    return {
        case.id: None for edition in editions(documents()[document]) for case in edition.cases()
    }


def _pair_names() -> Iterator[str]:
    """Yield the name of the invariance check of each dtype pair in documents of casts or calls.

    A pair of several documents comes several times.
    """
    for document in documents():
        if documents()[document].entry.operation in ("cast", "call"):
            for source, target in _ids_by_pair(document):
                yield f"{INVARIANCES}/{source}/{target}"


def _chain_names() -> Iterator[str]:
    for name, document in documents().items():
        for version in document.entry.versions:
            yield from _chains_of(name, version)


@cache
def _chains_of(document: str, version: str) -> dict[str, None]:
    """Return the names of the checks of the lossy chains of one version, as keys."""
    from specs.chains import chains_of, lossy  # Few patterns are about chains.

    chains = lossy(chains_of(document, version, has_all_modes=False))
    return {f"{CHAINS}/{chain.id}": None for chain in chains}


def all_ids(rules: str = "") -> list[str]:
    """Return the ids of all cases and the names of all invariance checks.

    If ``rules`` names house rules, return only the ids of cases of documents with these rules;
    raise KeyError if they are unknown.
    """
    ruled = known_rules()[rules].entry.documents if rules else ()
    with_rules = [f"{document}{JOINT}{rules}" for document in ruled]
    return [name for each in with_rules or (*documents(), INVARIANCES) for name in ids_of(each)]


@cache
def _ids_by_pair(document: str) -> dict[tuple[str, str], list[str]]:
    found: dict[tuple[str, str], list[str]] = {}
    for name in ids_of(document):
        _, source, target, *_ = name.split("/")
        found.setdefault((source, target), []).append(name)
    return found


def document_of(name: str) -> str:
    """Return the document's name in a case id or pattern; of a check's name, its first part."""
    return name.partition("/")[0].partition(":")[0]


def expand(pattern: str) -> list[str]:
    """Return the cases or checks of a pattern; none if its document's name has a wildcard.

    A case of several choices comes several times. Raise CastigateError if the choices make more
    than ``MAX_CHOICES`` texts.
    """
    texts = EITHER.split(pattern)
    # Every second text is a choice.
    choices = [text.split(",") if index % 2 else [text] for index, text in enumerate(texts)]
    if prod(map(len, choices)) > MAX_CHOICES:
        raise CastigateError(
            f"the choices of `{plain_line(pattern, SHOWN)}` make more than {MAX_CHOICES:,} texts; "
            "write `*`, or several patterns"
        )
    return [case for chosen in product(*choices) for case in _expand_stars("".join(chosen))]


def _expand_stars(pattern: str) -> list[str]:
    document = document_of(pattern)
    if document == CHAINS:
        return _expand_chains(pattern)
    if WITHIN_PART not in pattern:
        return [pattern] if pattern in ids_of(document) else []
    _, source, target, *_ = [*pattern.split("/"), "", ""]
    # Without a wildcard in the dtypes, only the cases of one pair need to be matched.
    one_pair = EVERYTHING not in pattern and WITHIN_PART not in source + target
    candidates = _ids_by_pair(document).get((source, target), ()) if one_pair else ids_of(document)
    return [name for name in candidates if matches(pattern, name)]


def _expand_chains(pattern: str) -> list[str]:
    """Return the chains that a pattern without choices stands for.

    There are a hundred thousand chains, so only those of one version are listed if it names one.
    """
    name, _, version = [*pattern.split("/"), ""][1].partition(":")
    is_one = name in documents() and version in documents()[name].entry.versions
    candidates = _chains_of(name, version) if is_one else ids_of(CHAINS)
    if WITHIN_PART not in pattern:
        return [pattern] if pattern in candidates else []
    return [each for each in candidates if matches(pattern, each)]


Box = tuple[frozenset[str], ...]
"""The texts that may stand in each part of an id; every combination of them is an id."""


def compress(cases: Iterable[str]) -> list[str]:
    """Return a short list of patterns and ids that stands for exactly these cases.

    It is not always the shortest, but always the same for the same cases.
    """
    by_length: dict[int, list[Box]] = {}
    for name in sorted(cases, key=natural_order):
        parts = re.split(SEPARATORS, name)
        by_length.setdefault(len(parts), []).append(tuple(frozenset([part]) for part in parts))
    boxes = [box for group in by_length.values() for box in _merged(group)]
    return sorted(map(_pattern, boxes), key=natural_order)


SEPARATORS = r"([:/])"
"""Matches the separators of an id; the texts between them may vary."""

MOST_ORDERED = 5
"""Up to this many varying parts, every order is tried; the ids of chains have up to nine."""


def _merged(boxes: list[Box]) -> list[Box]:
    """Merge boxes that differ in one part only, part after part, to few boxes.

    Up to ``MOST_ORDERED`` parts are merged in the order that leaves the fewest boxes. As long as
    more are left, which have too many orders, each step merges the part that leaves the fewest.
    """
    varying = [at for at in range(len(boxes[0])) if len({box[at] for box in boxes}) > 1]
    while len(varying) > MOST_ORDERED:
        merged = {at: _merged_along(boxes, at) for at in varying}
        best = min(varying, key=lambda at: len(merged[at]))
        boxes = merged[best]
        varying.remove(best)
    orders = (reduce(_merged_along, order, boxes) for order in permutations(varying))
    return min(orders, key=len)


def _merged_along(boxes: list[Box], at: int) -> list[Box]:
    together: dict[Box, list[frozenset[str]]] = {}
    for box in boxes:
        together.setdefault((*box[:at], *box[at + 1 :]), []).append(box[at])
    return [
        (*others[:at], frozenset().union(*texts), *others[at:])
        for others, texts in together.items()
    ]


def _pattern(box: Box) -> str:
    words = (sorted(texts, key=natural_order) for texts in box)
    return "".join(each[0] if len(each) == 1 else f"{{{','.join(each)}}}" for each in words)


def natural_order(name: str) -> list[tuple[int, str]]:
    """Return the key that sorts ids with the numbers in them by value: version 9 before 10."""
    return [
        (int(piece), "") if piece.isdigit() else (-1, piece)
        for piece in re.findall(r"\d+|\D+", name)
    ]
