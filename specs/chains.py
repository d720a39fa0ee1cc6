"""Chains: casts one after another, each of the result of the one before.

A graph rarely holds one cast alone. What a chain of casts may give follows from the rules of its
steps, with nothing added: each result that the first step allows goes through the second. So a
document that says nothing of chains decides them all the same, and an optimizer that removes a step
must leave these results as they are.

Texts have no place in a chain: a document allows many texts for one number, and each would have to
be read again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple, TypeVar

from specs.branches import Ruling
from specs.cases import Case
from specs.editions import edition
from specs.errors import CastigateError
from specs.formats import dtype_spelled, dtypes_spelled, format_named, is_exact
from specs.loader import document_and_version, document_named
from specs.ruling import ruling
from specs.selection import cases_of_pair

FEWEST_DTYPES, MOST_DTYPES = 3, 4
"""The fewest and the most dtypes of a chain."""
PATHS_KEPT = 4
STEPS_KEPT = 1 << 12
Input = TypeVar("Input")


@dataclass(frozen=True)
class Chain:
    """Casts of one version of a document; each step's target is the next one's source."""

    steps: tuple[Case, ...]

    @cached_property
    def id(self) -> str:
        """The path that identifies the chain: dtypes, each with the modes of the cast to it.

        >>> print(chain_named("onnx-cast:25/float32/float8e4m3fn/saturate:0/float32").id)
        onnx-cast:25/float32/float8e4m3fn/saturate:0/float32
        """
        first, *others = self.steps
        parts = [first.id]
        for step in others:
            parts += [step.target, *(f"{name}:{value}" for name, value in step.modes)]
        return "/".join(parts)

    @property
    def edition(self) -> str:
        """The document and its version, as ``DOCUMENT:VERSION``."""
        return f"{self.steps[0].document}:{self.steps[0].version}"

    @property
    def source(self) -> str:
        """The dtype at the beginning."""
        return self.steps[0].source

    @property
    def target(self) -> str:
        """The dtype at the end."""
        return self.steps[-1].target

    @property
    def dtypes(self) -> tuple[str, ...]:
        """All dtypes on the path."""
        return (self.source, *(step.target for step in self.steps))

    @cached_property
    def rulings(self) -> tuple[Ruling, ...]:
        """The ruling of each step."""
        return tuple(map(ruling, self.steps))

    @cached_property
    def direct(self) -> Case:
        """The cast from the first dtype to the last that shares the most modes with the last step.

        Access raises ValueError if the version has no such cast.
        """
        listed = cases_of_pair(
            self.steps[0].document, self.steps[0].version, self.source, self.target
        )
        modes = set(self.steps[-1].modes)
        # The direct cast may lack a mode that the last step has, such as `saturate`.
        return max(listed, key=lambda case: len(modes & set(case.modes)))

    def __str__(self) -> str:
        return self.id


class MissingStep(NamedTuple):
    """A step of a chain that a document lacks; ``pair`` has its dtypes and modes in words."""

    document: str
    pair: str


@dataclass(frozen=True)
class Company:
    """Chains that a backend runs as one program on one road, each with an input of its own.

    A road says how the program joins the casts and what an optimizer may do, such as
    ``level:all,middle:output``.
    """

    chains: tuple[Chain, ...]
    road: str

    def inputs(self, by_number: Mapping[str, Input]) -> list[Input]:
        """Return the input of each chain, which a mapping has under the chain's index, as text."""
        return [by_number[str(number)] for number in range(len(self.chains))]


def is_chain(parts: Sequence[str]) -> bool:
    """Return whether the parts of a question begin with a dtype, and name three or more dtypes."""
    places = _dtype_places(parts)
    return places[:1] == [0] and len(places) >= FEWEST_DTYPES


def chain_named(text: str) -> Chain:
    """Return the chain of an id; raise CastigateError if it is no chain, or a step is no case.

    Dtypes may be spelled as frameworks do, and version and modes left out.
    """
    found = chain_if_any(text)
    if isinstance(found, Chain):
        return found
    raise CastigateError(
        f"{text.partition('/')[0]} has no cast from {found.pair} for a chain; castigate specs"
        f" {found.document} lists its cases"
    )


def chain_if_any(text: str) -> Chain | MissingStep:
    """Return the chain of an id, or the first of its steps that its document lacks.

    If the id names no version, it is in the newest version that has all steps; if none has, the
    missing step is that of the newest. Raise CastigateError if the text is no chain.
    """
    document, *parts = text.split("/")
    known, version = document_and_version(document[:100], takes_yardsticks=True)
    name, versions = known.name, [version] if version else [*reversed(known.entry.versions)]
    places = _dtype_places(parts)
    if places[:1] != [0] or not FEWEST_DTYPES <= len(places) <= MOST_DTYPES:
        raise CastigateError(
            f"`{text[:200]}` is no chain of casts; write DOCUMENT:VERSION/DTYPE/DTYPE/DTYPE, with"
            f" the modes of each step after its target and {MOST_DTYPES} dtypes at most"
        )
    dtypes = [dtype_spelled(parts[place]) for place in places]
    ends = [*places[1:], len(parts)][1:]
    modes = [parts[place + 1 : end] for place, end in zip(places[1:], ends, strict=True)]
    tried = [_steps(name, each, dtypes, modes) for each in versions]
    for steps in tried:
        if None not in steps:
            return Chain(tuple(step for step in steps if step is not None))
    at = tried[0].index(None)
    words = f" with {', '.join(modes[at])}" if modes[at] else ""
    return MissingStep(name, f"{dtypes[at]} to {dtypes[at + 1]}{words}")


def _dtype_places(parts: Sequence[str]) -> list[int]:
    return [at for at, part in enumerate(parts) if ":" not in part and dtypes_spelled(part)]


def _steps(
    document: str, version: str, dtypes: Sequence[str], modes: Sequence[Sequence[str]]
) -> list[Case | None]:
    pairs = zip(dtypes, dtypes[1:], map(tuple, modes), strict=False)
    return [_step(document, version, *each) for each in pairs]


@lru_cache(STEPS_KEPT)
def _step(
    document: str, version: str, source: str, target: str, modes: tuple[str, ...]
) -> Case | None:
    for case in cases_of_pair(document, version, source, target):
        if set(modes) <= set(case.id.split("/")[3:]) and _may_stand(case):
            return case
    return None


def _may_stand(case: Case) -> bool:
    numbers = format_named(case.source).is_numeric and format_named(case.target).is_numeric
    return numbers and case.example is None and has_chains(case.document) and is_listed(case)


def has_chains(document: str) -> bool:
    """Return whether a document has chains: it is of casts, and no version follows a document.

    The chains of such a version would repeat those of the document that it follows.
    """
    entry = document_named(document).entry
    return entry.operation == "cast" and not any(each.follows for each in entry.versions.values())


def is_listed(case: Case) -> bool:
    """Return whether a case's version lists its pair and requires no error for any input of it."""
    listed = edition(document_named(case.document), case.version).listed
    return (case.source, case.target) in listed and not ruling(case).refused_branches


@lru_cache(PATHS_KEPT)
def steps_of(document: str, version: str) -> tuple[Case, ...]:
    """Return the casts of a version that can be steps, in the order of its cases."""
    cases = edition(document_named(document), version).cases()
    return tuple(filter(_may_stand, cases)) if has_chains(document) else ()


def chains_of(document: str, version: str, *, has_all_modes: bool = True) -> Iterator[Chain]:
    """Yield all chains of two casts of a version, source by source.

    If not ``has_all_modes``, leave out chains of which both steps have other modes than the default
    ones of their pairs.
    """
    steps = steps_of(document, version)
    by_source: dict[str, list[Case]] = {}
    for case in steps:
        by_source.setdefault(case.source, []).append(case)
    default = {(each.source, each.target): each for each in reversed(steps)}
    for first in steps:
        is_default = first is default[first.source, first.target]
        for second in by_source.get(first.target, ()):
            if has_all_modes or is_default or second is default[second.source, second.target]:
                yield Chain((first, second))


def lossy(chains: Iterable[Chain]) -> Iterator[Chain]:
    """Yield the chains with a dtype in between that does not hold every value of the source."""
    for chain in chains:
        source = format_named(chain.source)
        if not all(is_exact(source, format_named(each)) for each in chain.dtypes[1:-1]):
            yield chain
