"""Reads a ledger's YAML and checks it; errors name file and line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from reports.case_patterns import document_of, expand
from reports.findings.finding import FindingKind
from reports.known_failures import DIGITS, VARIES, parse_failure
from reports.ledger import file_name, folder_of
from reports.ledger.listing import InputOptions, KnownFinding, Ledger, ListedFailure
from reports.ledger.version_spans import Span, public_version, version_order
from reports.run_store.record import Examples, Seed
from specs.cases import JOINT
from specs.errors import CastigateError, Location
from specs.house_rules import known_rules, shipped_rules
from specs.model.document import Text
from specs.model.strict_model import StrictModel, validated
from specs.model.yaml_file import YamlFile, read_yaml

BACKEND_NAME = re.compile(r"[A-Za-z0-9_-]+(:[A-Za-z0-9_.-]+)?")
"""Matches a backend that can have a ledger: a plain name, with or without a variant."""
FAILURE = rf"(violates|deviates|error|crashed) (\d+ [0-9a-f]{{{DIGITS}}}|{VARIES})"
SEPARATOR = ", "
"""Separates the failures of a case."""

VersionText = Annotated[Text, AfterValidator(public_version)]
FailureText = Annotated[str, Field(pattern=f"^{FAILURE}({SEPARATOR}{FAILURE})*$")]
"""How a case fails: of each level the verdict, the number of wrong inputs, and the region.

Where answers differ from run to run, a person writes ``varies`` for number and region.
"""


class FindingEntry(StrictModel):
    """One known finding, and how each of its cases fails.

    ``cases`` maps each way to fail to patterns of the cases that fail so. ``upstream`` is the issue
    where the finding was reported.
    """

    finding: Text
    kind: FindingKind
    says: Text
    example: Text | None = None
    versions: Annotated[Text, AfterValidator(lambda text: str(Span.of(text)))]
    upstream: Annotated[str, Field(pattern="^https://")] | None = None
    cases: Annotated[dict[FailureText, Text | list[Text]], Field(min_length=1)]


class LedgerFile(StrictModel):
    """The known findings of one backend, and the versions and options with which it was run."""

    backend: Text
    made_with: Annotated[list[VersionText], Field(alias="made-with", min_length=1)]
    tier: Literal["quick", "full"]
    seed: Seed
    max_examples: Annotated[Examples, Field(alias="max-examples")]
    findings: list[FindingEntry]


def ledger_of(backend: str, case: str = "") -> str:
    """Return the name of the ledger that lists a backend's case.

    House rules have ledgers of their own.

    >>> ledger_of("ort", "onnx-cast+java:25/float32/int32")
    'ort+java'
    """
    _, joint, rules = document_of(case).partition(JOINT)
    return f"{backend}{joint}{rules}"


def parts_of(name: str) -> tuple[str, str]:
    """Return the backend of a ledger's name, and the house rules; empty if it has none.

    >>> parts_of("ort+java"), parts_of("tvm:llvm,mattr=+f16c")
    (('ort', 'java'), ('tvm:llvm,mattr=+f16c', ''))
    """
    backend, joint, rules = name.rpartition(JOINT)
    return (backend, rules) if joint and rules in known_rules() else (name, "")


def path_of(name: str) -> Path | None:
    """Return the path of a ledger, even if there is no file; None if its backend cannot have one.

    The ledger of house rules that do not ship lies beside the file of these rules.
    """
    backend, rules = parts_of(name)
    if not BACKEND_NAME.fullmatch(backend):
        return None
    is_own = rules in known_rules() and rules not in shipped_rules()
    folder = known_rules()[rules].source.path.parent if is_own else folder_of(backend)
    return folder / file_name(name)


def update_command(name: str) -> str:
    """Return the command line that rewrites a ledger by what its backend does now."""
    backend, rules = parts_of(name)
    by_rules = f" --rules={rules}" if rules else ""
    if rules and rules not in shipped_rules():
        by_rules = f" --rules={known_rules()[rules].source.path}"
    return f"pytest --pyargs conformance --backend={backend}{by_rules} --update-ledger"


def load_ledger(name: str) -> Ledger | None:
    """Return the ledger of a name; None if it has no file.

    Raise CastigateError if the file is invalid, or is the ledger of another name.
    """
    path = path_of(name)
    if path is None or not path.is_file():
        return None
    ledger = read_ledger(path)
    if ledger.backend != name:
        raise CastigateError(f"{path}:1: this is the ledger of {ledger.backend}, not of {name}")
    return ledger


def read_ledger(path: Path) -> Ledger:
    """Read the ledger in a file; raise DocumentError with file and line if it is invalid."""
    source = read_yaml(path)
    if not isinstance(source.data, dict):
        raise source.error((), "a ledger is a mapping that begins with `backend: NAME`")
    file = validated(LedgerFile, source)
    options = InputOptions(file.tier, file.seed, file.max_examples)
    versions = tuple(sorted(set(file.made_with), key=version_order))
    ledger = Ledger(file.backend, options, versions=versions)
    for index, entry in enumerate(file.findings):
        span = Span.of(entry.versions)
        for end in (span.first, span.last):
            if end not in versions:
                raise source.error(
                    ("findings", index, "versions"), f"version {end} is not in `made-with`"
                )
        known = KnownFinding(entry.kind, entry.says, entry.example or "", entry.upstream)
        ledger.findings[entry.finding] = known
        _add_cases(source, index, entry, span, ledger)
    return ledger


def _patterns(index: int, entry: FindingEntry) -> Iterator[tuple[str, str, Location]]:
    """Yield each pattern of an entry, after its cases' failures and before its location."""
    for text, patterns in entry.cases.items():
        here = ("findings", index, "cases", text)
        if isinstance(patterns, str):
            yield text, patterns, here
        else:
            for number, pattern in enumerate(patterns):
                yield text, pattern, (*here, number)


def _add_cases(
    source: YamlFile, index: int, entry: FindingEntry, span: Span, ledger: Ledger
) -> None:
    """Add the cases of an entry, listed for a ``span`` of versions, to a ledger.

    Raise DocumentError for a pattern without cases or with too many choices, and for a case that is
    already listed with other failures or for another span of versions that overlaps.
    """
    for text, pattern, here in _patterns(index, entry):
        try:
            cases = expand(pattern)
        except CastigateError as error:
            raise source.error(here, str(error)) from None
        if not cases:
            message = f"`{pattern}` is no case; castigate specs DOCUMENT:VERSION lists them"
            raise source.error(here, message)
        found = [parse_failure(part) for part in text.split(SEPARATOR)]
        for case in dict.fromkeys(cases):
            listings = ledger.listings.setdefault(case, [])
            same = [each for each in listings if each.span == span]
            if same and [each.failure for each in same] != found:
                raise source.error(here, f"{case} is listed otherwise by another finding")
            if any(each.span.overlaps(span) for each in listings if each.span != span):
                raise source.error(here, f"{case} is listed twice for some versions")
            names = tuple(
                sorted({entry.finding, *(name for each in same for name in each.findings)})
            )
            others = [each for each in listings if each.span != span]
            ledger.listings[case] = others + [ListedFailure(each, span, names) for each in found]
