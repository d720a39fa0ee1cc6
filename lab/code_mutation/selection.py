"""Which mutants a run tries: as many of each package as it has lines for, drawn by a seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from random import Random

from lab.code_mutation.mutants import Mutant, draw_mutants

PACKAGES = (
    "specs",
    "oracles/reference",
    "reports/grading",
    "reports/findings",
    "reports/gate",
    "reports/ledger",
)


def select_mutants(root: Path, seed: int, number: int) -> list[Mutant]:
    """Draw mutants of all packages; a larger number adds to those of a smaller one."""
    sources = {package: sources_of(root, package) for package in PACKAGES}
    lines = {package: _lines(sources[package].values()) for package in PACKAGES}
    shares = share_out(number, lines)
    return [
        mutant
        for package, files in sources.items()
        for mutant in islice(draw(files, Random(f"{seed} {package}")), shares[package])
    ]


def draw(sources: Mapping[str, str], chance: Random) -> Iterator[Mutant]:
    """Yield mutants of some modules, of each about as many as it has lines for."""
    lines = {file: _lines([source]) for file, source in sources.items()}
    drawn: dict[str, Iterator[Mutant]] = {}
    while lines:
        [file] = chance.choices(list(lines), list(lines.values()))
        if file not in drawn:
            drawn[file] = draw_mutants(file, sources[file], Random(chance.random()))
        mutant = next(drawn[file], None)
        if mutant is None:
            del lines[file]
        else:
            yield mutant


def share_out(number: int, lines: Mapping[str, int]) -> dict[str, int]:
    """Share a number out by lines; what rounding leaves goes to the largest remainders."""
    whole = sum(lines.values())
    shares = {name: number * each // whole for name, each in lines.items()}
    by_remainder = sorted(lines, key=lambda name: (-(number * lines[name] % whole), name))
    for name in by_remainder[: number - sum(shares.values())]:
        shares[name] += 1
    return shares


def package_of(file: str) -> str:
    """The package that a module belongs to."""
    return next(package for package in PACKAGES if file.startswith(f"{package}/"))


def sources_of(root: Path, package: str) -> dict[str, str]:
    """The modules of a package and of those below it, by their paths from the root."""
    return {
        path.relative_to(root).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted((root / package).rglob("*.py"))
    }


def _lines(sources: Iterable[str]) -> int:
    return sum(source.count("\n") for source in sources)
