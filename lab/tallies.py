"""Tallies of all open inputs of a pair, which are too many for one array.

They are counted in parts, in any order, and only with the behaviors that the inputs of the tier
``quick`` have not refuted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from numpy.typing import NDArray

from reports.behaviors.explanation import groups
from reports.behaviors.tally import BehaviorSearch, CountedInputs, Tally, tally_each
from specs.formats import Format


def tally_answers(search: BehaviorSearch, inputs: NDArray[Any], answers: NDArray[Any]) -> Tally:
    """Return the tally of open inputs, in any order, and one backend's answers to them."""
    [tally] = tally_each(search, inputs, [answers])
    return tally


def merged(one: Tally, other: Tally) -> Tally:
    """Return the tally of the inputs of both tallies, which are of the same search."""
    source = one.search.source
    return Tally(
        one.search,
        _merge_counts(one.inputs, other.inputs, source),
        _merge_counts(one.misses, other.misses, source),
    )


def _merge_counts(
    one: Mapping[Any, CountedInputs], other: Mapping[Any, CountedInputs], source: Format
) -> dict[Any, CountedInputs]:
    result = dict(one)
    for key, counted in other.items():
        result[key] = result[key].merged(counted, source) if key in result else counted
    return result


def narrow(tally: Tally) -> BehaviorSearch:
    """Return the tally's search with only the behaviors that explain, or are nearest to, a group.

    More inputs can refute a behavior, but never make a refuted one right. If they refute all that
    are left for a group, one that explains a part of it may be missing: search among all again.
    """
    found = list(groups(tally))
    kept = {nearest for _, _, nearest in found}
    kept |= {
        candidate.name
        for candidate in tally.search.candidates
        for atoms, name, _ in found
        if name and all((atom, candidate.name) not in tally.misses for atom in atoms)
    }
    candidates = tuple(each for each in tally.search.candidates if each.name in kept)
    return replace(tally.search, candidates=candidates)
