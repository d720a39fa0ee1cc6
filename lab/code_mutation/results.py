"""The outcomes of a run's mutants, stored so that a run can continue and pages can be made."""

from __future__ import annotations

import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from lab.code_mutation.mutants import Mutant
from lab.code_mutation.trial import Outcome
from specs import VERSION
from specs.errors import CastigateError


class Tried(BaseModel):
    """A mutant, and its first and its latest outcome."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mutant: Mutant
    first: Outcome
    now: Outcome


class Results(BaseModel):
    """The mutants of a seed that were tried, with their outcomes."""

    model_config = ConfigDict(extra="forbid")

    seed: int
    date: str
    versions: str
    tried: list[Tried]

    def untried(self, mutants: list[Mutant]) -> list[Mutant]:
        """The mutants that were not tried or that survived, since there may be new tests."""
        killed = {each.mutant for each in self.tried if each.now != "survived"}
        return [mutant for mutant in mutants if mutant not in killed]

    def add(self, mutant: Mutant, outcome: Outcome) -> None:
        """Add an outcome; the first one that the mutant ever had is kept beside it."""
        firsts = {each.mutant: each.first for each in self.tried}
        others = [each for each in self.tried if each.mutant != mutant]
        first = firsts.get(mutant, outcome)
        self.tried = [*others, Tried(mutant=mutant, first=first, now=outcome)]

    def keep(self, mutants: list[Mutant]) -> None:
        """Drop mutants that are not selected, such as those of modules that have changed."""
        by_mutant = {each.mutant: each for each in self.tried}
        self.tried = [by_mutant[mutant] for mutant in mutants if mutant in by_mutant]


def read_results(path: Path) -> Results:
    """Read stored results; CastigateError if they are not there or damaged."""
    try:
        return Results.model_validate_json(path.read_bytes())
    except OSError as error:
        raise CastigateError(
            f"`{path}` cannot be read: {error.strerror}; run the mutants first"
        ) from None
    except ValidationError as error:
        where = ".".join(str(part) for part in error.errors()[0]["loc"])
        raise CastigateError(f"`{path}` is damaged at `{where}`; delete it and run again") from None


def new_results(seed: int) -> Results:
    """Results of no mutants, with today's date and versions."""
    today = datetime.now(UTC).date().isoformat()
    packages = ", ".join(f"{name} {version(name)}" for name in ("cosmic_ray", "numpy", "numba"))
    versions = f"castigate {VERSION}, Python {platform.python_version()}, {packages}"
    return Results(seed=seed, date=today, versions=versions, tried=[])


def write_results(results: Results, path: Path) -> None:
    """Write results to a file as JSON, and create the file's folder if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(results.model_dump_json(indent=1) + "\n", encoding="utf-8")
