"""A policy: what a gate requires of a run, read from YAML; errors name file and line."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)

from reports.case_patterns import (
    EVERYTHING,
    INVARIANCES,
    alternatives,
    any_matches,
    ids_of,
    matches,
)
from reports.gate.canonical_json import digest_of
from reports.known_failures import DIGITS, VARIES, KnownFailure
from reports.run_store.record import Examples, Seed, TierOfCases
from specs.errors import CastigateError, Location, did_you_mean
from specs.loader import documents
from specs.model.document import Identifier, Text
from specs.model.strict_model import StrictModel, explain_validation_error
from specs.model.yaml_file import YamlFile, read_yaml

SHIPPED = Path(__file__).with_name("policies")
CLAIMED = "claimed"
"""In `documents`: all documents that the backend claims."""
ListedWord = TypeVar("ListedWord", bound=str)
HINTS = {
    "a document begins with `document:`": "a policy begins with `policy: NAME`",
    "or write a quoted hex pattern": "if it is text, or write a whole number",
}
"""Maps what the YAML reader advises for documents to what helps with a policy."""


def _date(text: str) -> str:
    try:
        if date.fromisoformat(text).isoformat() == text:
            return text
    except ValueError:
        pass
    raise ValueError(f"`{text}` is not a date; write it as '2027-01-31', in quotes")


def _once(words: list[ListedWord]) -> list[ListedWord]:
    for at, word in enumerate(words):
        if word in words[:at]:
            raise ValueError(f"`{word}` is listed twice; remove one of the two")
    return words


Date = Annotated[str, AfterValidator(_date), WithJsonSchema({"type": "string", "format": "date"})]
PolicyTier = Literal["quick", "full"]
JudgedLevel = Literal["required", "recommended"]
Levels = Annotated[list[JudgedLevel], Field(min_length=1), AfterValidator(_once)]
PerCent = Annotated[int, Field(ge=0, le=100)]
Seconds = Annotated[int, Field(ge=1)]
Region = Annotated[str, Field(pattern=f"^[0-9a-f]{{{DIGITS}}}$")]


class AcceptedEntry(StrictModel):
    """An acceptance: until a day, cases may break one rule, or have one verdict without answers.

    With ``region``, only failures of that region are accepted.
    """

    cases: Annotated[list[Text], Field(min_length=1)]
    rule: Text | None = None
    verdict: Literal["error", "crashed"] | None = None
    region: Region | None = None
    reason: Text
    expires: Date

    @model_validator(mode="after")
    def _one_kind(self) -> AcceptedEntry:
        if (self.rule is None) == (self.verdict is None):
            raise ValueError("an accepted divergence needs either a `rule` or a `verdict`")
        if self.region is not None and self.rule is None:
            raise ValueError("`region` needs a `rule`; remove it or name the rule")
        return self

    def accepts(self, case: str, found: KnownFailure) -> bool:
        """Return whether the entry covers a failure of a case; its date is not considered."""
        known = KnownFailure(self.rule or self.verdict or "", region=self.region or VARIES)
        return known.covers(found) and any_matches(self.cases, case)


class CaseEntry(StrictModel):
    """Patterns of cases, with the tier and levels that replace those of the policy for them.

    ``minimum_coverage`` is the percentage of these cases that must be answered. None leaves a
    requirement as it is.
    """

    match: Annotated[list[Text], Field(min_length=1)]
    tier: PolicyTier | None = None
    levels: Levels | None = None
    minimum_coverage: Annotated[PerCent | None, Field(alias="minimum-coverage")] = None


class PolicyEntry(StrictModel):
    """A policy as its YAML holds it.

    If ``cases`` is not empty, the run has only cases that one of its entries matches, and the first
    that matches a case is used for it.
    """

    policy: Identifier
    title: Text
    documents: (
        Literal["claimed"] | Annotated[list[Text], Field(min_length=1), AfterValidator(_once)]
    )
    levels: Levels
    tier: PolicyTier
    cases: list[CaseEntry] = Field([])
    seed: Seed | None = None
    max_examples: Annotated[Examples, Field(alias="max-examples")] = 1000
    may_be_unsupported: list[Text] = Field([], alias="may-be-unsupported")
    minimum_coverage: dict[str, PerCent] = Field({}, alias="minimum-coverage")
    accepted: list[AcceptedEntry] = Field([])
    only_new: Annotated[bool, Field(alias="only-new")] = False
    time_limit: Annotated[Seconds | None, Field(alias="time-limit")] = None


@dataclass(frozen=True)
class Policy:
    """A policy with valid fields; only ``load_policy`` also looks up the names in it."""

    entry: PolicyEntry

    @property
    def name(self) -> str:
        return self.entry.policy

    @property
    def tier(self) -> PolicyTier:
        """The highest tier at which any case is run."""
        return "full" if "full" in self.tiers else "quick"

    @property
    def tiers(self) -> set[str]:
        """All tiers at which cases are run."""
        return {choice.tier for choice in self.choices} or {self.entry.tier}

    @cached_property
    def choices(self) -> tuple[TierOfCases, ...]:
        """The patterns of the cases that are run, with their tiers; empty if all cases are run."""
        return tuple(
            TierOfCases(match=tuple(each.match), tier=each.tier or self.entry.tier)
            for each in self.entry.cases
        )

    def entry_of(self, case: str) -> CaseEntry | None:
        """Return the first entry of ``cases`` that matches a case id, or None."""
        return next((each for each in self.entry.cases if any_matches(each.match, case)), None)

    def levels_of(self, case: str) -> list[JudgedLevel]:
        """Return the levels that are judged for a case or check: it must break no rule of them."""
        entry = self.entry_of(case)
        return entry.levels if entry is not None and entry.levels else self.entry.levels

    @cached_property
    def content(self) -> dict[str, Any]:
        """The policy as certificates hold it, with all defaults."""
        return self.entry.model_dump(mode="json", by_alias=True)

    @cached_property
    def digest(self) -> str:
        """The sha256 of the content, which does not depend on how the YAML is written."""
        return digest_of(self.content)


def shipped_policies() -> dict[str, Path]:
    """Map the name of each policy that ships with Castigate to its file."""
    return {path.stem: path for path in sorted(SHIPPED.glob("*.yaml"))}


def shipped_like(name: str) -> Path | None:
    """Return the file of the shipped policy with the same letters and digits in its name, or None.

    Case and punctuation do not count.
    """
    letters = {_letters(shipped): path for shipped, path in shipped_policies().items()}
    return letters.get(_letters(name))


def _letters(name: str) -> str:
    return "".join(filter(str.isalnum, name)).lower()


def policy_named(word: str) -> Policy:
    """Load the shipped policy of a name, or a policy from the path of a YAML file.

    Raise CastigateError if there is neither, or if the policy is invalid.
    """
    shipped = shipped_policies()
    if word in shipped:
        return load_policy(shipped[word])
    if Path(word).suffix not in (".yaml", ".yml") and not Path(word).is_file():
        raise CastigateError(
            f"unknown policy `{word}`; {did_you_mean(word, shipped)}"
            f"give {', '.join(shipped)} or the path of a YAML file"
        )
    return load_policy(Path(word))


def _explained(source: YamlFile, error: ValidationError) -> tuple[Location, str]:
    """Return where in the YAML of a policy a validation error is, and a message about it."""
    match source.data.get("documents", CLAIMED):
        case str(word) if word != CLAIMED:
            message = f"`{word}` is no list; write `documents: ['{word}']`, or `{CLAIMED}`"
            return ("documents",), message
    return explain_validation_error(source, error)


def load_policy(path: Path) -> Policy:
    """Read and check a policy file; raise CastigateError with file and line if it is invalid."""
    try:
        source = read_yaml(path)
    except CastigateError as error:
        message = str(error)
        for hint, own in HINTS.items():
            message = message.replace(hint, own)
        raise CastigateError(message) from None
    if not isinstance(source.data, dict):
        raise source.error((), "a policy is a mapping that begins with `policy: NAME`")
    try:
        entry = PolicyEntry.model_validate(source.data)
    except ValidationError as error:
        raise source.error(*_explained(source, error)) from None
    shipped = shipped_like(entry.policy)
    if shipped is not None and path.parent != SHIPPED:
        raise source.error(
            ("policy",), f"`{shipped.stem}` is the name of a policy that ships; choose another"
        )
    _check(source, entry)
    return Policy(entry)


def policy_from_certificate(content: object, named: str) -> Policy:
    """Return the policy that a certificate holds; raise CastigateError if a field is invalid.

    Unlike in ``load_policy``, documents, rules and patterns are not looked up. A policy whose name
    is that of a shipped one, but for case and punctuation, must also have its content. ``named`` is
    the certificate's file, which the error names.
    """
    try:
        policy = Policy(PolicyEntry.model_validate(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, ("policy", "content", *first["loc"])))
        raise CastigateError(f"{named}: `{where}`: {first['msg']}") from None
    shipped = shipped_like(policy.name)
    if shipped is not None and load_policy(shipped).digest != policy.digest:
        raise CastigateError(f"{named}: its policy has the name `{policy.name}` of another one")
    return policy


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of a policy, for text editors."""
    schema = PolicyEntry.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "A Castigate policy"
    return schema


def _check(source: YamlFile, entry: PolicyEntry) -> None:
    """Raise CastigateError for an unknown document or rule, or a pattern that matches no case."""
    for index, word in enumerate([] if entry.documents == CLAIMED else entry.documents):
        _check_document(source, ("documents", index), word)
    rules = _rule_names(entry)
    for index, accepted in enumerate(entry.accepted):
        if accepted.rule is not None and accepted.rule not in rules:
            hint = did_you_mean(accepted.rule, rules)
            message = f"no document of the policy has a rule `{accepted.rule}`; {hint}".rstrip("; ")
            raise source.error(("accepted", index, "rule"), message)
    narrow = [(where, written) for where, written in _patterns(entry) if written != EVERYTHING]
    known = list(_case_ids(entry)) if narrow else []
    for location, written in narrow:
        # Each text of a choice must match something, or the policy asks less than it says.
        for pattern in alternatives(written):
            if any(matches(pattern, case) for case in known):
                continue
            is_prefix = any(matches(f"{pattern}/**", case) for case in known)
            hint = f"did you mean `{pattern}/**`? " if is_prefix else did_you_mean(pattern, known)
            raise source.error(
                location,
                f"pattern `{pattern}` matches no case of the policy's documents; {hint}"
                "list their cases with `castigate specs DOCUMENT`",
            )


def _rule_names(entry: PolicyEntry) -> set[str]:
    """Return the names of all rules that verdicts on a policy's documents can report as broken."""
    named = list(documents()) if entry.documents == CLAIMED else entry.documents
    entries = [documents()[word.partition(":")[0]].entry for word in named]
    return {name for each in entries for name in each.breakable()}


def _check_document(source: YamlFile, location: Location, word: str) -> None:
    name, colon, version = word.partition(":")
    # A word with a colon but without a version is unknown as a whole.
    name = word if colon and not version else name
    if name not in documents():
        hint = did_you_mean(name, documents())
        if name == CLAIMED:
            hint = f"write `documents: {CLAIMED}`, without brackets, for all that are claimed; "
        known = ", ".join(documents())
        raise source.error(location, f"unknown document `{name}`; {hint}the documents are {known}")
    versions = documents()[name].entry.versions
    if version and version not in versions:
        raise source.error(
            location, f"document `{name}` has no version `{version}`; it has {', '.join(versions)}"
        )


def _case_ids(entry: PolicyEntry) -> Iterator[str]:
    """Yield the ids of all cases of a policy's documents, and all names of invariance checks."""
    named = list(documents()) if entry.documents == CLAIMED else entry.documents
    for document in named:
        name, _, version = document.partition(":")
        for case in ids_of(name):
            if not version or case.startswith(f"{document}/"):
                yield case
    yield from ids_of(INVARIANCES)


def _patterns(entry: PolicyEntry) -> Iterator[tuple[Location, str]]:
    """Yield each pattern of a policy, after its location in the YAML."""
    for index, chosen in enumerate(entry.cases):
        for number, pattern in enumerate(chosen.match):
            yield ("cases", index, "match", number), pattern
    for index, pattern in enumerate(entry.may_be_unsupported):
        yield ("may-be-unsupported", index), pattern
    for pattern in entry.minimum_coverage:
        yield ("minimum-coverage", pattern), pattern
    for index, accepted in enumerate(entry.accepted):
        for number, pattern in enumerate(accepted.cases):
            yield ("accepted", index, "cases", number), pattern
