"""``run.json``: what a run was asked, on which machines it ran, and whether it is complete."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AwareDatetime,
    BeforeValidator,
    Field,
    PlainSerializer,
    ValidationError,
    model_validator,
)

from reports.case_patterns import any_matches
from specs import VERSION
from specs.errors import CastigateError
from specs.house_rules import HouseRules, know_rules, known_rules
from specs.json_source import JsonError, parse_json
from specs.loader import Document, documents, know_document
from specs.model.strict_model import StrictModel
from specs.plain_text import plain_text

FORMAT_VERSION: Final = 2
CHECKSUM = "checksum"
EPOCH = "SOURCE_DATE_EPOCH"
"""The variable that replaces the clock in records, so that a run can be repeated byte by byte."""
PACKAGES = ("numpy", "numba", "pyarrow")
"""Packages whose versions a run records."""
LOCAL_FOLDERS = re.compile(r"(^|[\s=:'\",])(?:file://)?/(?:[^/\s=:'\",]+/)*(?=[^/\s])")

MOST_EXAMPLES = 100_000_000
Seed = Annotated[int, Field(ge=0)]
Examples = Annotated[int, Field(ge=0, le=MOST_EXAMPLES)]
"""How many random inputs are drawn for a wide source."""


class BackendRecord(StrictModel):
    """A backend's name as the user gave it, and the backend's version."""

    name: Annotated[str, Field(min_length=1)]
    version: str


class TierOfCases(StrictModel):
    """Patterns of case ids, and the tier at which their cases are run."""

    match: Annotated[tuple[str, ...], Field(min_length=1)]
    tier: Literal["quick", "full"]

    def __str__(self) -> str:
        return f"{' '.join(self.match)} at {self.tier}"


def _dtypes(stored: Any) -> Any:
    """Return as a tuple the dtypes that a record stores as ``null``, one name or a list.

    Any other value comes back as it is, so that validation refuses it.
    """
    match stored:
        case None:
            return ()
        case str():
            return (stored,)
        case list():
            return tuple(stored)
    return stored


def _stored_dtypes(dtypes: tuple[str, ...]) -> str | tuple[str, ...] | None:
    match dtypes:
        case ():
            return None
        case (only,):
            return only
    return dtypes


Dtypes = Annotated[tuple[str, ...], BeforeValidator(_dtypes), PlainSerializer(_stored_dtypes)]
"""The names of the selected dtypes; empty if all are selected."""


class Selection(StrictModel):
    """The documents and dtypes to which the user limited a run; an empty tuple limits nothing.

    Documents may have house rules and a version, as ``onnx-cast+java:25``. ``choices`` are those of
    a policy, if it chooses among the cases: each case is run at the tier of the first choice that
    matches it, and left out if none does. Without choices, all cases are run at the run's tier.
    """

    documents: tuple[str, ...] = ()
    source: Dtypes = ()
    target: Dtypes = ()
    choices: tuple[TierOfCases, ...] = ()

    def choice(self, case: str) -> TierOfCases | None:
        """Return the first choice that matches a case id, or None."""
        return next((each for each in self.choices if any_matches(each.match, case)), None)


class Shard(StrictModel):
    """Shard ``index`` of ``count``, counted from 1."""

    index: Annotated[int, Field(ge=1)]
    count: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _within(self) -> Self:
        if self.index > self.count:
            raise ValueError(f"there is no shard {self} of a run")
        return self

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class Environment(StrictModel):
    """A machine on which backends ran, without anything that identifies its owner."""

    python: str
    platform: str
    machine: str
    cpus: Annotated[int, Field(ge=1)]
    packages: dict[str, str | None]


class RunRecord(StrictModel):
    """The content of ``run.json``, without its checksum."""

    format: Literal[2] = FORMAT_VERSION
    suite: str = VERSION
    documents: dict[str, str]
    backends: Annotated[tuple[BackendRecord, ...], Field(min_length=1)]
    selection: Selection = Selection()
    tier: Literal["quick", "full"] = "quick"
    seed: Seed = 0
    max_examples: Examples = 1000
    isolates_sweeps: bool = False
    """Whether sweeps too were answered in processes that share no memory with the judge."""
    chains: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """The editions whose chains of casts were run, by backend."""
    own_documents: dict[str, str] = Field(default_factory=dict)
    """The texts of the users' own documents of the run, by name."""
    rules: dict[str, str] = Field(default_factory=dict)
    """The texts of the house rules by which the run judges, by the name of the rules."""
    shard: Shard | None = None
    environments: tuple[Environment, ...]
    command_line: tuple[str, ...]
    started: AwareDatetime
    finished: AwareDatetime | None = None
    complete: bool = False
    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    parts: tuple[str, ...] = ()
    """The files of a complete shard's tasks."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [backend.name for backend in self.backends]
        if len(set(names)) < len(names):
            raise ValueError("a backend is named twice")
        if self.complete and (self.finished is None or self.exit_code is None):
            raise ValueError("a complete run has an end and an exit code")
        return self

    @property
    def versions(self) -> dict[str, str]:
        """The version of each backend, by the backend's name."""
        return {each.name: each.version for each in self.backends}

    @property
    def backend_words(self) -> str:
        """The names and versions of the backends."""
        return ", ".join(f"{each.name} {each.version}" for each in self.backends)

    @property
    def selects_only_own_documents(self) -> bool:
        """Whether all documents of the run are the user's own, of which no ledger knows."""
        names = [re.split("[:+]", name)[0] for name in self.selection.documents]
        return bool(names) and all(name in self.own_documents for name in names)


def current_time() -> datetime:
    """Return the time to the second, or that of ``SOURCE_DATE_EPOCH``.

    That variable makes runs reproducible; raise CastigateError if it is not a number of seconds
    since 1970.
    """
    epoch = os.environ.get(EPOCH)
    if epoch is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise CastigateError(
            f"{EPOCH} is `{epoch[:30]}`; set it to seconds since 1970, or unset it"
        ) from None


def current_environment() -> Environment:
    """Describe the machine on which this process runs."""
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        cpus=os.cpu_count() or 1,
        packages={name: _installed(name) for name in PACKAGES},
    )


def shareable_command(argv: Sequence[str]) -> tuple[str, ...]:
    """Return a command line, program first, with the last name alone of each absolute path."""
    program, *arguments = argv
    words = (PurePath(program).name, *(LOCAL_FOLDERS.sub(r"\1", each) for each in arguments))
    return tuple(map(plain_text, words))


def serialize_record(record: RunRecord) -> bytes:
    """Encode a record as the bytes of ``run.json``, with a checksum as the last key."""
    # A run that is no shard has no list of parts; most runs ask no chains, and have neither
    # documents of users nor house rules.
    rare = ("parts", "chains", "own_documents", "rules")
    empty = {name for name in rare if not getattr(record, name)}
    content = record.model_dump(mode="json", exclude=empty)
    sealed = content | {CHECKSUM: _checksum(content)}
    return (json.dumps(sealed, indent=2, ensure_ascii=False) + "\n").encode()


def _checksum(content: dict[str, Any]) -> str:
    return _digest(json.dumps(content, sort_keys=True))


def parse_record(data: bytes, path: str, *, allows_edited: bool = False) -> RunRecord:
    """Decode the bytes of ``run.json``; raise CastigateError if they are damaged.

    Raise it too for another format, and if another document or other house rules have the name of
    the run's. The run's own documents and house rules are registered in this process, because
    readers of its verdicts need them. With ``allows_edited``, what has the name of another is left
    out instead. ``path`` is the file that an error names. A file without a checksum was written
    before there was one.
    """
    try:
        content = parse_json(data)
    except JsonError as error:
        raise CastigateError(
            f"{path} is cut short or damaged: it {error}; run again into another --out"
        ) from None
    version_found = content.get("format") if isinstance(content, dict) else None
    if type(version_found) is not int or version_found != FORMAT_VERSION:
        raise CastigateError(
            f"{path} has format {json.dumps(version_found)[:30]}, castigate {VERSION} reads format "
            f"{FORMAT_VERSION}; use the version that wrote it"
        )
    has_checksum, checksum = CHECKSUM in content, content.pop(CHECKSUM, None)
    try:
        # As JSON, because only then are lists accepted as tuples, and texts as times.
        record = RunRecord.model_validate_json(json.dumps(content))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        message = first["msg"].removeprefix("Value error, ")
        raise CastigateError(
            f"{path} is damaged: {f'`{where}`: ' if where else ''}{message}"
        ) from None
    if has_checksum and checksum != _checksum(content):
        raise CastigateError(
            f"{path} is damaged: its checksum is wrong; copy the whole folder again, "
            "or run again into another --out"
        )
    for name, text in record.own_documents.items():
        if not _is_other(documents().get(name), text):
            _know_document(name, text, path)
        elif not allows_edited:
            raise CastigateError(
                f"{path}: another document has the name `{name}` of the run's own; give the text "
                "that the run has, or compare two runs of an edited document by castigate diff"
            )
    for name, text in record.rules.items():
        known = known_rules().get(name)
        if known is None or not _is_other(known, text):
            know_rules(name, text)
        elif not allows_edited:
            raise CastigateError(
                f"{path}: it was judged by other house rules than those of {known.source.path}, "
                f"which have the same name `{name}`"
            )
    return record


def _is_other(known: Document | HouseRules | None, text: str) -> bool:
    return known is not None and known.content != text


def _know_document(name: str, text: str, path: str) -> None:
    try:
        know_document(text)
    except CastigateError as error:
        raise CastigateError(f"{path}: its own document `{name}`: {error}") from None


def edited_texts(one: RunRecord, other: RunRecord) -> list[str]:
    """Return the names of users' documents and house rules of which two runs have other texts."""
    pairs = ((one.own_documents, other.own_documents), (one.rules, other.rules))
    return [
        name
        for first, second in pairs
        for name, text in first.items()
        if second.get(name, text) != text
    ]


def record_differences(one: RunRecord, other: RunRecord) -> list[tuple[str, str]]:
    """List the options and versions that affect answers and differ between two records.

    Each is a pair of texts, from ``one`` and from ``other``.
    """
    first, second = _facts(one), _facts(other)
    return [
        (first.get(name, f"no {name}"), second.get(name, f"no {name}"))
        for name in first | second
        if first.get(name) != second.get(name)
    ]


def _facts(record: RunRecord) -> dict[str, str]:
    """Map the name of each option or version that affects answers to its text.

    Options that are not set are left out.
    """
    selected, shard = record.selection, record.shard
    values = {
        "castigate": record.suite,
        "backend": record.backend_words,
        "--document": " --document ".join(selected.documents),
        "--source": " --source ".join(selected.source),
        "--target": " --target ".join(selected.target),
        "cases": ", ".join(map(str, selected.choices)),
        "--tier": record.tier,
        "--seed": record.seed,
        "--max-examples": record.max_examples,
        "--chains": ", ".join(f"{name} {' '.join(each)}" for name, each in record.chains.items()),
        "--rules": ", ".join(
            f"{name} of sha256 {_digest(text)}" for name, text in record.rules.items()
        ),
        "sweeps in processes of their own": record.isolates_sweeps or None,
        "--shard": shard and str(shard),
    }
    facts = {name: f"{name} {value}" for name, value in values.items() if value not in (None, "")}
    facts["backend"] = facts["backend"].removeprefix("backend ")
    for name, digest in record.documents.items():
        facts[f"document {name}"] = f"document {name} of sha256 {digest}"
    return facts


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
