"""``castigate bisect``: the first release of a framework that answers otherwise."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from operator import eq
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from conformance.commands.options import TimeoutOption
from conformance.driver import BackendJudge, drive
from conformance.extras.releases.environments import (
    Environments,
    EnvironmentsOption,
    default_folder,
    releases,
    requirements_of,
)
from conformance.extras.releases.release_changes import (
    change_of_answers,
    change_of_results,
    given_of,
)
from conformance.families import explain_of, family_of, sentence_of, tensor_of
from conformance.families.cast.explanation import input_row
from conformance.families.family import WrittenQuestion
from conformance.judging.asking import Settings
from conformance.judging.verdicts import script
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import close, launch_configs, load_isolated
from reports.changes.change import BackendChanges
from reports.changes.of_runs import has_changed
from reports.changes.words import screen
from reports.findings.cells import Cell
from reports.findings.finding_text import counted, datum_words
from reports.findings.judged_cells import cell_of
from reports.judgement import Judgement
from reports.problem_words import joined_words
from reports.problems import WrongValues
from specs.cases import Case
from specs.errors import CastigateError
from specs.questions import read_question
from specs.selection import case_named

Found = TypeVar("Found")


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
    if (sentence := sentence_of(words)) is not None:
        words = [sentence[0].id, sentence[1]]
    question = read_question(words)
    if question.is_open:
        raise CastigateError(
            f"name the document too, as in {question.cases[0].id}: the answer may depend on it"
        )
    [case] = question.cases
    if question.inputs and family_of(case).tensors:
        raise CastigateError(
            f"a case with a scale is asked whole; leave `{question.inputs[0]}` out: "
            f"castigate bisect {case.id} --backend {backend}"
        )
    framework = requirements_of(backend)[0]
    known = releases(framework, versions)
    made = Environments(backend, Path(environments) if environments else default_folder())
    installed = _installed(framework.name)
    answers: dict[str, ReleaseAnswer] = {}

    def answer(release: str) -> ReleaseAnswer:
        if release not in answers:
            typer.echo(f"castigate: asking {framework.name} {release}", err=True)
            python = None if release == installed else made.python(release)
            answers[release] = answer_of_release(case, question.inputs, backend, python, timeout)
        return answers[release]

    change = first_change(known, answer, answer(known[-1]), same_result)
    shown = change if change is not None else (known[0], known[-1])
    changes = _changes(case, backend, question.inputs, shown, [answers[each] for each in shown])
    if as_json:
        typer.echo(_json(case.id, framework.name, known, change, answers, changes))
        return
    typer.echo(f"{case.id} on {backend}, {len(known)} releases from {known[0]} to {known[-1]}")
    for line in _lines(shown, answers, changes, has_changed=change is not None):
        typer.echo(line)
    found = (
        f"nothing changed from {framework.name} {known[0]} to {known[-1]}"
        if change is None
        else f"the first release with the change: {framework.name} {change.first_other}"
    )
    typer.echo(
        f"{found} ({counted(len(answers), 'release')} asked, "
        f"{counted(len(made.made), 'environment')} made)"
    )


def _changes(
    case: Case,
    backend: str,
    inputs: Sequence[str],
    shown: tuple[str, str],
    answers: Sequence[ReleaseAnswer],
) -> BackendChanges:
    """Compare the answers of two releases, by verdict where both were judged."""
    before, now = answers
    if before.judgement is not None and now.judgement is not None:
        return change_of_results(case, backend, shown, (before.judgement, now.judgement))
    both = before.compared, now.compared
    given = given_of(case, inputs)
    return change_of_answers(case, backend, shown, given, both, is_claimed=now.is_claimed)


def _lines(
    shown: tuple[str, str],
    answers: dict[str, ReleaseAnswer],
    changes: BackendChanges,
    *,
    has_changed: bool,
) -> Iterator[str]:
    """Yield the answers of two releases and, if they differ, how, and a script for the later."""
    width = max(map(len, shown))
    for release in dict.fromkeys(shown):
        for line in answers[release].words:
            yield f"  {release:<{width}}  {line}"
    if has_changed:
        _, *lines = screen([changes], None)
        yield from lines
    if (script := answers[shown[1]].script) and has_changed:
        yield "  reproduce"
        yield from (f"    {line}".rstrip() for line in script.splitlines())


def _json(
    case: str,
    package: str,
    known: list[str],
    change: ReleaseChange | None,
    answers: dict[str, ReleaseAnswer],
    changes: BackendChanges,
) -> str:
    return json.dumps(
        {
            "case": case,
            "package": package,
            "releases": known,
            "change": change._asdict() if change is not None else None,
            "changes": [
                {
                    "kind": each.kind,
                    "says": each.says,
                    "example": each.example and vars(each.example),
                }
                for each in changes.changes
            ],
            "answers": {release: each.compared for release, each in answers.items()},
        },
        ensure_ascii=False,
    )


def _installed(package: str) -> str:
    try:
        return version(package).partition("+")[0]
    except PackageNotFoundError:
        return ""


class ReleaseChange(NamedTuple):
    """Two neighboring releases: the last with the old answer, and the first with another."""

    last_same: str
    first_other: str


def first_change(
    releases: Sequence[str],
    answer_of: Callable[[str], Found],
    newest: Found,
    is_same: Callable[[Found, Found], bool] = eq,
) -> ReleaseChange | None:
    """Return two neighboring releases whose answers differ; None if the first and last agree.

    ``releases``, at least one, are in rising order, and ``answer_of`` returns the answer of one;
    that of the last is ``newest``. ``is_same`` compares two. ``answer_of`` is called about log2(n)
    times for n releases. If answers change several times, any of the changes may be found.
    """
    low, high = 0, len(releases) - 1
    oldest = answer_of(releases[low])
    if high == 0 or is_same(oldest, newest):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if is_same(oldest, answer_of(releases[middle])):
            low = middle
        else:
            high = middle
    return ReleaseChange(releases[low], releases[high])


@dataclass(frozen=True)
class ReleaseAnswer:
    """The answers of a release: data to compare, lines of text, and a script that shows them.

    ``judgement`` is the result of the quick tier, if no inputs are given. ``is_claimed`` says
    whether the backend claims the document.
    """

    compared: Any
    words: tuple[str, ...]
    script: str
    judgement: Judgement | None = None
    is_claimed: bool = True


def same_result(one: ReleaseAnswer, other: ReleaseAnswer) -> bool:
    """Return whether nothing changed between two releases, as two runs are compared."""
    if one.judgement is None or other.judgement is None:
        return bool(one.compared == other.compared)
    before, now = (_cell(each.judgement) for each in (one, other) if each.judgement is not None)
    return not has_changed(before, now, has_same_inputs=True)


def _cell(judgement: Judgement) -> Cell:
    answered = judgement.answered
    digests = () if answered is None else (answered.inputs.digest, answered.answers.digest)
    cell = cell_of(case_named(judgement.case), judgement, digests)
    return replace(cell, answer_digest=judgement.answer_digest)


def answer_of_release(
    case: Case, inputs: Sequence[str], backend: str, python: str | None, seconds: float
) -> ReleaseAnswer:
    """Ask one release, and return its answers to ``inputs``.

    Without inputs, the answers are its result of the quick tier; but if the case takes a whole
    tensor, ``inputs`` are its elements, even if there are none. ``python`` is the Python in which
    the release is installed, or None for this one. ``seconds`` limits one answer.
    """
    pythons = [f"{backend}={python}"] if python is not None else []
    loaded = load_isolated(backend, launch_configs([backend], pythons, seconds)[backend])
    try:
        judge = BackendJudge(loaded, None, Settings())
        shaped = tensor_of(case)
        if not inputs and shaped is None:
            judgement = judge.judge(case)
            compared = [judgement.verdict, *_compared(judgement)]
            words = tuple(_problem_lines(case, judgement)) or (judgement.verdict,)
            return ReleaseAnswer(compared, words, judgement.reproduction, judgement)
        is_by_input = family_of(case).is_by_input
        asked = [[word] for word in inputs] if is_by_input else [inputs]
        explained = [explain_of(case)(case, WrittenQuestion(each)) for each in asked]
        answers = [drive(each.ask(), judge.client) for each in explained]
        read = shaped.read if shaped is not None else input_row
        words = tuple(_answer_lines(case, inputs, answers))
        shown = drive(script(judge.subject, case, read(case, inputs)), judge.client)
        is_claimed = judge.subject.claims(case)
        return ReleaseAnswer(answers, words, shown, is_claimed=is_claimed)
    finally:
        close(loaded)


def _compared(judgement: Judgement) -> Iterator[str]:
    """Yield as data for JSON the digests of inputs and answers, and all problems in words."""
    if judgement.answered is not None:
        yield judgement.answered.inputs.digest
        yield judgement.answered.answers.digest
    if judgement.answer_digest is not None:
        yield judgement.answer_digest.asked
        yield judgement.answer_digest.answers
    yield joined_words(judgement.problems)


def _problem_lines(case: Case, judgement: Judgement) -> Iterator[str]:
    wrong = [each for each in judgement.problems if isinstance(each, WrongValues)]
    for each in wrong:
        given = datum_words(case.source, each.smallest)
        got = datum_words(case.target, each.answer)
        yield f"{judgement.verdict}: {counted(each.count, 'input')}, such as {given}: {got}"
    if not wrong and judgement.problems:
        yield f"{judgement.verdict}: {joined_words(judgement.problems)}"


def _answer_lines(case: Case, inputs: Sequence[str], answers: Sequence[Any]) -> Iterator[str]:
    for word, answer in zip(inputs or ("",), answers, strict=False):
        match answer:
            case {"text": text}:
                said = datum_words(case.target, str(text))
            case {"shape": shape}:
                said = f"shape {shape}: {' '.join(answer.get('bits', ()))}"
            case dict():
                said = ": ".join(next(iter(answer.items())))
            case _:
                said = datum_words(case.target, str(answer))
        yield f"{word} gives {said}" if word else said
