"""The verdicts of people who read surviving mutants: ``verdicts.yaml``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from lab.code_mutation.mutants import Mutant
from specs.errors import CastigateError
from specs.model.strict_model import explain_validation_error
from specs.model.yaml_file import read_yaml

VERDICTS = Path(__file__).with_name("verdicts.yaml")
TESTED, EQUIVALENT, UNTESTED = "tested by ", "equivalent because ", "not tested because "
NOT_READ = "not read"

Key = tuple[str, str, str, str]
"""File, function or class, line before and after."""
Verdicts = dict[Key, str]


class Verdict(BaseModel):
    """A verdict on one mutant, which is identified by its place and its line before and after."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    inside: str
    before: str
    after: str
    verdict: Annotated[str, Field(pattern=f"^({TESTED}|{EQUIVALENT}|{UNTESTED})\\S")]

    @property
    def key(self) -> Key:
        return self.file, self.inside, self.before, self.after


def read_verdicts(path: Path = VERDICTS) -> Verdicts:
    """Read the verdicts; CastigateError if one does not begin as it must, or occurs twice."""
    source = read_yaml(path)
    try:
        listed = TypeAdapter(list[Verdict]).validate_python(source.data)
    except ValidationError as error:
        raise source.error(*explain_validation_error(source, error)) from None
    found: Verdicts = {}
    for each in listed:
        if each.key in found:
            raise CastigateError(
                f"`{path}` has `{each.before}` of {each.inside} in {each.file} twice; remove one"
            )
        found[each.key] = each.verdict
    return found


def verdict_of(mutant: Mutant, verdicts: Verdicts) -> str:
    """The verdict on a mutant, or ``not read``."""
    return verdicts.get((mutant.file, mutant.inside, mutant.before, mutant.after), NOT_READ)
