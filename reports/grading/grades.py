"""The grade of an answer, and the rule that an answer with a bad grade breaks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from specs.branches import Ruling

ALLOWED: Final = 0
"""The grade of an answer that the rule allows, and that it recommends where it recommends one."""
NOT_RECOMMENDED: Final = 1
"""The grade of an answer that the rule allows, but that is not the one it recommends."""
NOT_ALLOWED: Final = 2
"""The grade of an answer that the rule does not allow, whatever the rule's level is."""

Grades = NDArray[np.uint8]
BLOCK = 1 << 16
"""Answers that are looked up at a time, so that the indices stay in a core's cache."""

RuleKey = tuple[str, str, str]
"""A rule, its clause, and the level at which it is broken."""


@dataclass(frozen=True, eq=False)
class RuleGroups:
    """The keys under which a ruling's wrong answers are gathered, required levels first."""

    keys: tuple[RuleKey, ...]
    _group_of: NDArray[np.uint8]

    def of(self, grades: Grades, branch_indices: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return 1 + the index of the key that each answer breaks, or 0 where it is allowed."""
        groups, table = np.empty(grades.size, np.uint8), self._group_of.ravel()
        count = np.uint16(self._group_of.shape[1])
        for first in range(0, grades.size, BLOCK):
            here = slice(first, first + BLOCK)
            # One index into the flattened table: numpy takes several times as long for two.
            groups[here] = table.take(count * grades[here] + branch_indices[here])
        return groups


@lru_cache(maxsize=256)
def rule_groups(ruling: Ruling) -> RuleGroups:
    """List the keys of a ruling; branches of one rule and level share a key."""
    by_branch = [
        {
            NOT_RECOMMENDED: (branch.rule, branch.clause, "recommended"),
            NOT_ALLOWED: (branch.rule, branch.clause, branch.level),
        }
        for branch in ruling.branches
    ]
    distinct = {key for keys in by_branch for key in keys.values()}
    keys = sorted(distinct, key=lambda key: (key[2] != "required", key))
    group_of = np.zeros((NOT_ALLOWED + 1, len(by_branch)), np.uint8)
    for index, key_of_grade in enumerate(by_branch):
        for grade, key in key_of_grade.items():
            group_of[grade, index] = keys.index(key) + 1
    return RuleGroups(tuple(keys), group_of)
