"""``run.json``: what a run is about, on what it ran, and how far it has come."""

from __future__ import annotations

import json
import os
import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Annotated, Final, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, ValidationError, model_validator

from specs.errors import CastigateError
from specs.release import VERSION

FORMAT: Final = 1
PACKAGES = ("numpy", "numba", "pyarrow")
LOCAL_FOLDERS = re.compile(r"(^|[\s=:'\",])(?:file://)?/(?:[^/\s=:'\",]+/)*(?=[^/\s])")


class Part(BaseModel):
    """A record that takes no word it does not know and never changes."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class BackendRecord(Part):
    """A backend as the user named it."""

    name: str
    version: str


class Selection(Part):
    """What the user asked for, in the user's words."""

    documents: tuple[str, ...] = ()
    source: str | None = None
    target: str | None = None


class Shard(Part):
    """One of so many parts of a run, counted from 1."""

    index: Annotated[int, Field(ge=1)]
    count: Annotated[int, Field(ge=1)]

    @model_validator(mode="after")
    def _within(self) -> Self:
        if self.index > self.count:
            raise ValueError(f"there is no shard {self} of a run")
        return self

    def __str__(self) -> str:
        return f"{self.index}/{self.count}"


class Environment(Part):
    """A machine on which answers came about; nothing in it tells whose it is."""

    python: str
    platform: str
    machine: str
    cpus: int
    packages: dict[str, str | None]


class RunRecord(Part):
    """All of ``run.json``."""

    format: Literal[1] = FORMAT
    suite: str = VERSION
    documents: dict[str, str]
    backends: tuple[BackendRecord, ...]
    selection: Selection = Selection()
    tier: Literal["quick", "full"] = "quick"
    seed: int = 0
    max_examples: int = 1000
    shard: Shard | None = None
    environments: tuple[Environment, ...]
    command_line: tuple[str, ...]
    started: AwareDatetime
    finished: AwareDatetime | None = None
    complete: bool = False
    exit_code: int | None = None


def now() -> datetime:
    """The time, to the second; that of ``SOURCE_DATE_EPOCH``, if set, for the same bytes again."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if epoch is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        return datetime.fromtimestamp(int(epoch), UTC)
    except (ValueError, OverflowError, OSError):
        raise CastigateError(
            f"SOURCE_DATE_EPOCH is `{epoch[:30]}`; set it to seconds since 1970, or unset it"
        ) from None


def environment() -> Environment:
    """The machine this runs on."""
    return Environment(
        python=platform.python_version(),
        platform=platform.platform(),
        machine=platform.machine(),
        cpus=os.cpu_count() or 1,
        packages={name: _installed(name) for name in PACKAGES},
    )


def command_line(argv: Sequence[str]) -> tuple[str, ...]:
    """A command as it can be shown to others: of absolute paths, only the last name."""
    program, *arguments = argv
    return PurePath(program).name, *(LOCAL_FOLDERS.sub(r"\1", each) for each in arguments)


def written(record: RunRecord) -> bytes:
    """The bytes of ``run.json``."""
    return (record.model_dump_json(indent=2) + "\n").encode()


def parsed(data: bytes, named: str) -> RunRecord:
    """The record in a ``run.json``, or an error that says what is wrong with the file."""
    try:
        content = json.loads(data)
    except (ValueError, RecursionError):
        raise CastigateError(
            f"{named} is cut short or damaged: it is not JSON; run again into another --out"
        ) from None
    found = content.get("format") if isinstance(content, dict) else None
    if found != FORMAT:
        raise CastigateError(
            f"{named} has format {json.dumps(found)[:30]}, castigate {VERSION} reads format "
            f"{FORMAT}; use the version that wrote it"
        )
    try:
        return RunRecord.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise CastigateError(f"{named} is damaged: `{where}`: {first['msg']}") from None


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def differences(one: RunRecord, other: RunRecord) -> list[tuple[str, str]]:
    """What matters for the answers and is not the same, in words, as pairs."""
    here, there = _facts(one), _facts(other)
    return [
        (here.get(name, f"no {name}"), there.get(name, f"no {name}"))
        for name in here | there
        if here.get(name) != there.get(name)
    ]


def _facts(record: RunRecord) -> dict[str, str]:
    """What matters for the answers, as a user would say it; what was not given is not said."""
    selected, shard = record.selection, record.shard
    facts = {
        "castigate": record.suite,
        "backend": ", ".join(f"{backend.name} {backend.version}" for backend in record.backends),
        "--document": " --document ".join(selected.documents),
        "--source": selected.source,
        "--target": selected.target,
        "--tier": record.tier,
        "--seed": record.seed,
        "--max-examples": record.max_examples,
        "--shard": shard and str(shard),
    }
    told = {name: f"{name} {fact}" for name, fact in facts.items() if fact not in (None, "")}
    told["backend"] = told["backend"].removeprefix("backend ")
    for name, digest in record.documents.items():
        told[f"document {name}"] = f"document {name} of sha256 {digest}"
    return told
