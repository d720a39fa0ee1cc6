"""Lists the cases of a document of carriers.

Few carriers take each pair of dtypes: a product keeps its dtype, a store may have another. What a
document says of them stands in its rules. So a pair has a case for each carrier of which a rule
speaks, also one that leaves the answer open.
"""

from __future__ import annotations

from collections.abc import Iterator

from specs.cases import CARRIER, Case
from specs.editions import Edition


def cases(version: Edition) -> Iterator[Case]:
    """Yield a case for each pair of dtypes and each carrier of which a rule speaks.

    The carriers of a pair are in the order in which the document lists them.
    """
    entry = version.document.entry
    listed = entry.parameters[CARRIER].values
    for source, target in version.pairs():
        pair = Case(version.document.name, version.version, source, target)
        spoken_of: set[str] = set()
        for name in version.rules_between(source, target):
            conditions = dict(entry.rules[name].when)
            named = conditions.pop(CARRIER, listed)
            if version.matches(conditions, pair):
                spoken_of.update(named)
        for carrier in listed:
            if carrier in spoken_of:
                yield Case(pair.document, pair.version, source, target, ((CARRIER, carrier),))
