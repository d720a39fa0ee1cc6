"""Groups backends by framework, and says where a road's results are not those of its framework.

A framework may be asked on several roads, such as ``gcc``, ``gcc:f16c`` and ``gcc:x87``. Most of
them give the same results, which screens and pages then show once.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from oracles.registry import is_program
from reports.findings.cells import Cell, CellKey
from reports.findings.finding import Finding, Findings

MOST_NAMES = 6
"""The most backends that a line names."""


def backend_and_road(name: str) -> tuple[str, str]:
    """Split a backend's name into the framework and the variant, which is empty for the usual one.

    A program, and a class of a module or a file, has no variant.

    >>> backend_and_road("torch:compile")
    ('torch', 'compile')
    >>> backend_and_road("vendor.py:Vendor")
    ('vendor.py:Vendor', '')
    """
    framework, _, variant = name.partition(":")
    is_plain = re.fullmatch(r"[\w-]+", framework) and not is_program(name)
    return (framework, variant) if is_plain else (name, "")


@dataclass(frozen=True)
class RoadGroup:
    """A framework's backends: the plain one, with which its other roads are compared."""

    framework: str
    plain: str
    roads: tuple[str, ...]

    @property
    def backends(self) -> tuple[str, ...]:
        """All backends of the framework, the plain one first."""
        return self.plain, *self.roads

    def road_of(self, backend: str) -> str:
        """Return the road of one of its backends, as in ``:f16c``; its whole name if plain."""
        return backend.removeprefix(self.framework) or backend


def road_groups(backends: Iterable[str]) -> list[RoadGroup]:
    """Group backends by framework, in the order in which the frameworks first occur.

    If a framework's own name is not among them, its first road stands for it.
    """
    found: dict[str, list[str]] = {}
    for each in backends:
        found.setdefault(backend_and_road(each)[0], []).append(each)
    groups = []
    for framework, names in found.items():
        plain = framework if framework in names else names[0]
        roads = tuple(each for each in names if each != plain)
        groups.append(RoadGroup(framework, plain, roads))
    return groups


def differing_cases(
    cells: Mapping[CellKey, Cell], groups: Iterable[RoadGroup]
) -> dict[str, frozenset[str]]:
    """Return, by road, the ids of the cases in which its result is not that of the plain backend.

    A case that only one of the two was asked is among them. Plain backends are left out.
    """
    results: dict[str, dict[str, Hashable]] = {}
    for (backend, case), cell in cells.items():
        results.setdefault(backend, {})[case] = _result(cell)
    found: dict[str, frozenset[str]] = {}
    for group in groups:
        plain = results.get(group.plain, {}).items()
        for road in group.roads:
            found[road] = frozenset(case for case, _ in plain ^ results.get(road, {}).items())
    return found


def _result(cell: Cell) -> Hashable:
    """Return what makes two results the same; messages may name the road, so they do not."""
    answers = cell.asked, cell.answers, cell.answer_digest
    broken = tuple((*each.key, each.wrong, each.digest) for each in cell.broken)
    return cell.verdict, broken, answers


def finding_key(finding: Finding) -> tuple[str, str, int, int]:
    """Return what two backends' findings have in common if they are the same, to the last input."""
    return finding.kind, finding.name, len(finding.cases), finding.inputs


def same_findings(findings: Findings, backend: str, other: str) -> bool:
    """Return whether two backends have the same findings, in the same order."""
    some, others = (map(finding_key, findings.get(each, ())) for each in (backend, other))
    return [*some] == [*others]


def alike_roads(values: Mapping[str, Hashable]) -> Iterator[tuple[str, ...]]:
    """Yield the backends of a mapping by framework, those with equal values together."""
    for group in road_groups(values):
        found: dict[Hashable, list[str]] = {}
        for each in group.backends:
            found.setdefault(values[each], []).append(each)
        yield from map(tuple, found.values())


def together(backends: Iterable[str], every: Iterable[str], most: int = MOST_NAMES) -> str:
    """Name backends in one line: those of a whole framework once, and at most ``most`` names.

    ``every`` are all backends that there are.
    """
    some = {*backends}
    names: list[str] = []
    for group in road_groups(every):
        present = [each for each in group.backends if each in some]
        if group.roads and len(present) == len(group.backends):
            count = len(group.roads)
            others = "other road" if count == 1 else f"{count} other roads"
            names.append(f"{group.plain} and its {others}")
        else:
            names += present
    left = len(names) - most
    return ", ".join(names) if left <= 0 else f"{', '.join(names[:most])} and {left} more"
