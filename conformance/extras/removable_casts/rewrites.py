"""Rewrites: rules by which real optimizers change chains, read from ``specs/rewrites.yaml``.

A rewrite is a condition on the dtypes of a chain A→B→C, and the casts that are left if it holds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

import specs
from specs.cases import Case
from specs.chains import Chain, chain_named
from specs.formats import Format, format_named, formats, is_exact
from specs.loader import document_and_version
from specs.model.strict_model import StrictModel, as_list, validated
from specs.model.yaml_file import read_yaml

REWRITES_FILE = Path(specs.__file__).with_name("rewrites.yaml")
PLACES = "ABC"
DENIED = "not-"
RELATIONS: Mapping[str, Callable[[Format, Format], bool]] = {
    "same": lambda one, other: one == other,
    "holds": is_exact,
    "narrower": lambda one, other: other.bits < one.bits,
    "wider": lambda one, other: other.bits > one.bits,
}


TextList = Annotated[list[str], BeforeValidator(as_list, json_schema_input_type=str | list[str])]


class RelationRow(StrictModel):
    """One way in which a relation holds for two dtypes: every field that is given must hold.

    ``from_`` and ``to`` have the dtypes, or groups of them, that the first and the second may be.
    ``width`` names another relation that must hold too.
    """

    from_: TextList = Field([], alias="from")
    to: TextList = Field([])
    width: str = ""


class Rewrite(StrictModel):
    """A rule of an optimizer, with its place in the optimizer's code.

    Each item of ``when`` is a sufficient condition on the dtypes of a chain A→B→C. It has the
    dtypes of a place by its letter, such as ``A``, and the relations of two places by both, such as
    ``A-B``. A rule without any says ``why`` it rewrites no chain. ``leaves`` says what is left of a
    chain (see ``left_by``); for ``through``, ``wider`` has, by B, the dtype that replaces B.
    ``relations`` are those that only this rule's conditions use. ``edition`` names the document and
    version that judge the rule.
    """

    system: str
    place: str
    default: str
    edition: str = ""
    leaves: Literal["direct", "nothing", "other-dtypes", "through"] = "direct"
    wider: dict[str, str] = Field({})
    relations: dict[str, list[RelationRow]] = Field({})
    when: list[dict[str, TextList]] = Field([])
    why: str = ""

    @model_validator(mode="after")
    def _check(self) -> Rewrite:
        if bool(self.when) == bool(self.why):
            raise ValueError("a rewrite has either `when` or `why` it rewrites no chain")
        if self.when and not self.edition:
            raise ValueError("a rewrite needs the `edition` that judges it")
        if (self.leaves == "through") != bool(self.wider):
            raise ValueError("`wider` goes with `leaves: through`")
        return self


class Rewrites(StrictModel):
    """All rewrites, and the groups of dtypes that their conditions name."""

    groups: dict[str, list[str]]
    rewrites: dict[str, Rewrite]

    @model_validator(mode="after")
    def _check_words(self) -> Rewrites:
        for name, rule in self.rewrites.items():
            if rule.edition:
                document_and_version(rule.edition, takes_yardsticks=True)
            rows = [row for relation in rule.relations.values() for row in relation]
            relations = {*RELATIONS, *rule.relations}
            named = {row.width for row in rows if row.width}
            dtypes = {word for row in rows for word in (*row.from_, *row.to)}
            for key, words in (item for way in rule.when for item in way.items()):
                if key in PLACES:
                    dtypes |= {*words}
                elif len(key) == 3 and key[0] in PLACES and key[1] == "-" and key[2] in PLACES:
                    named |= {*words}
                else:
                    raise ValueError(f"{name}: `{key}` is no condition; write A, B, C or as A-B")
            if unknown := dtypes - {*formats(), *self.groups}:
                raise ValueError(f"{name}: `{min(unknown)}` is neither a dtype nor a group")
            if unknown := {word.removeprefix(DENIED) for word in named} - relations:
                known = ", ".join(sorted(relations))
                raise ValueError(f"{name}: `{min(unknown)}` is no relation; they are {known}")
        return self

    def applies(self, rule: Rewrite, chain: Chain) -> bool:
        """Whether a rule rewrites a chain; false for a chain of more than two casts."""
        if len(chain.steps) != len(PLACES) - 1:
            return False
        dtypes = dict(zip(PLACES, chain.dtypes, strict=True))
        return any(
            all(
                dtypes[key] in self._dtypes(words)
                if key in PLACES
                else all(
                    self._related(rule, word, dtypes[key[0]], dtypes[key[2]]) for word in words
                )
                for key, words in way.items()
            )
            for way in rule.when
        )

    def _dtypes(self, words: list[str]) -> set[str]:
        return {dtype for word in words for dtype in self.groups.get(word, [word])}

    def _related(self, rule: Rewrite, word: str, one: str, other: str) -> bool:
        if word.startswith(DENIED):
            return not self._related(rule, word.removeprefix(DENIED), one, other)
        if word in RELATIONS:
            return RELATIONS[word](format_named(one), format_named(other))
        return any(
            (not row.from_ or one in self._dtypes(row.from_))
            and (not row.to or other in self._dtypes(row.to))
            and (not row.width or self._related(rule, row.width, one, other))
            for row in rule.relations[word]
        )


def left_by(rule: Rewrite, chain: Chain) -> tuple[Case, ...]:
    """Return the casts that a rule leaves of a chain that it rewrites.

    By ``leaves`` these are the direct cast, unless it would not change the dtype; nothing; the
    steps that change the dtype; or the casts through the ``wider`` dtype, in default modes.
    """
    match rule.leaves:
        case "direct":
            return () if chain.source == chain.target else (chain.direct,)
        case "nothing":
            return ()
        case "other-dtypes":
            return tuple(step for step in chain.steps if step.source != step.target)
        case "through":
            middle = rule.wider[chain.dtypes[1]]
            return chain_named(f"{chain.edition}/{chain.source}/{middle}/{chain.target}").steps


@cache
def rewrites() -> Rewrites:
    """Return the shipped rewrites."""
    return load_rewrites(REWRITES_FILE)


def load_rewrites(path: Path) -> Rewrites:
    """Load a file of rewrites; raise DocumentError with file and line if it is invalid.

    An edition that does not exist raises CastigateError without them.
    """
    return validated(Rewrites, read_yaml(path))
