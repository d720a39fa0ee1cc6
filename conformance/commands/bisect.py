"""``castigate bisect``: the first release of a framework that answers otherwise."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.commands.options import EnvironmentsOption, TimeoutOption
from conformance.surveys.bisection import first_change
from conformance.surveys.environments import Environments, default_folder
from conformance.surveys.release_answers import ReleaseAnswer, answer_of_release
from conformance.surveys.releases import releases, requirements_of
from oracles.backend.launch_config import DEFAULT_TIMEOUT
from reports.findings.finding_text import counted
from specs.errors import CastigateError
from specs.questions import read_question


def bisect_command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="CASE [INPUT]...",
            help="A case, as castigate explain takes it, and inputs; without any, all inputs of"
            " the tier quick.",
        ),
    ],
    backend: Annotated[str, typer.Option("--backend", metavar="NAME", help="The backend.")],
    versions: Annotated[
        str,
        typer.Option(
            metavar="RANGE", help="Releases, such as 1.28..1.32 or 1.28.0,1.30.0 (default: all)."
        ),
    ] = "..",
    environments: EnvironmentsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object.")] = False,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Find the first release of a framework that answers otherwise, and show both answers."""
    question = read_question(words)
    if question.is_open:
        raise CastigateError(
            f"name the document too, as in {question.cases[0].id}: the answer may depend on it"
        )
    [case] = question.cases
    framework = requirements_of(backend)[0]
    known = releases(framework, versions)
    made = Environments(backend, Path(environments) if environments else default_folder())
    installed = _installed(framework.name)
    answers: dict[str, ReleaseAnswer] = {}

    def answer(release: str) -> Any:
        if release not in answers:
            typer.echo(f"castigate: asking {framework.name} {release}", err=True)
            python = None if release == installed else made.python(release)
            answers[release] = answer_of_release(case, question.inputs, backend, python, timeout)
        return answers[release].compared

    change = first_change(known, answer, answer(known[-1]))
    if change is None:
        shown = (known[0], known[-1])
        found = f"{framework.name} {known[0]} and {known[-1]} answer alike"
    else:
        shown = change
        found = f"the first release that answers otherwise: {framework.name} {change.first_other}"
    if as_json:
        typer.echo(_json(case.id, framework.name, known, change, answers))
        return
    typer.echo(f"{case.id} on {backend}, {len(known)} releases from {known[0]} to {known[-1]}")
    for line in _lines(shown, answers, has_changed=change is not None):
        typer.echo(line)
    typer.echo(
        f"{found} ({counted(len(answers), 'release')} asked, "
        f"{counted(len(made.made), 'environment')} made)"
    )


def _lines(
    shown: tuple[str, str], answers: dict[str, ReleaseAnswer], *, has_changed: bool
) -> Iterator[str]:
    """The answers of two releases, and if they differ a script that shows the later one's."""
    width = max(map(len, shown))
    for release in dict.fromkeys(shown):
        for line in answers[release].words:
            yield f"  {release:<{width}}  {line}"
    if (script := answers[shown[1]].script) and has_changed:
        yield "  reproduce"
        yield from (f"    {line}".rstrip() for line in script.splitlines())


def _json(
    case: str, package: str, known: list[str], change: Any, answers: dict[str, ReleaseAnswer]
) -> str:
    return json.dumps(
        {
            "case": case,
            "package": package,
            "releases": known,
            "change": change._asdict() if change is not None else None,
            "answers": {release: each.compared for release, each in answers.items()},
        },
        ensure_ascii=False,
    )


def _installed(package: str) -> str:
    """The release that is installed beside Castigate; empty if none is."""
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return ""
