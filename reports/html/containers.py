"""The tables that the page of containers shows; the layer that asks parties provides them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

IDENTICAL, PARTLY, CHANGED, REFUSED = "identical", "partly refused", "changed", "refused"
SIGNS: Mapping[str, str] = {IDENTICAL: "=", PARTLY: "~", CHANGED: "!", REFUSED: "–"}
"""The sign of each outcome of passing a dtype from one party to another, the best first."""
CLASSES: Mapping[str, str] = {
    IDENTICAL: "v-conforms",
    PARTLY: "v-unsupported",
    CHANGED: "v-violates",
    REFUSED: "v-unsupported",
}
"""The colors of signs: those of verdicts."""
MEANINGS: Mapping[str, str] = {
    IDENTICAL: "every tensor comes back with its bits, its dtype and its shape",
    PARTLY: "some tensors are refused, all others come back unchanged",
    CHANGED: "a tensor comes back changed, or ends the process",
    REFUSED: "the writer or the reader refuses every tensor",
}


@dataclass(frozen=True)
class ContainerCell:
    """A group of dtypes from a writer to a reader: the count of each outcome, and words."""

    group: str
    writer: str
    reader: str
    counts: Counter[str]
    words: str

    @property
    def outcome(self) -> str:
        """The outcome that colors the cell: the one that most wants attention."""
        return next(each for each in (CHANGED, PARTLY, IDENTICAL, REFUSED) if self.counts[each])


@dataclass(frozen=True)
class ContainerFault:
    """A fault in words, with the tensor that shows it and a script."""

    title: str
    dtypes: str
    example: str
    script: str


@dataclass(frozen=True)
class ContainerTable:
    """A container: its readers, the cells of all writers, and what is wrong."""

    name: str
    readers: tuple[str, ...]
    cells: tuple[ContainerCell, ...]
    faults: tuple[ContainerFault, ...]

    @property
    def rows(self) -> Sequence[tuple[str, str, Mapping[str, ContainerCell]]]:
        """By group and writer the cells of each reader; without rows in which all is refused."""
        found: dict[tuple[str, str], dict[str, ContainerCell]] = {}
        for cell in self.cells:
            found.setdefault((cell.group, cell.writer), {})[cell.reader] = cell
        groups = dict.fromkeys(group for group, _ in found)
        return [
            (group, writer, found[group, writer])
            for group in groups
            for own, writer in found
            if own == group
            and any(cell.outcome != REFUSED for cell in found[group, writer].values())
        ]


Tables = Callable[[str], Sequence[ContainerTable]]
"""Returns the tables that were stored with a run."""
