"""``castigate portable``: on which inputs backends agree, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from conformance.commands.options import (
    AnswersFileOption,
    AnswersPageOption,
    PythonOption,
    TierChoice,
    TimeoutOption,
    pair_named,
)
from conformance.extras.portable.pairs import PortablePairs, page, pair_lines
from conformance.extras.portable.questions import (
    PairQuestion,
    Surveyed,
    of_backends,
    of_run,
)
from conformance.extras.portable.requirements import required_range
from conformance.pair_answers import LostBackendError
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import launch_configs, load_all
from oracles.registry import BUILTINS, installed
from reports.behaviors.known_answers import known_answers
from reports.run_store.open_run import open_run
from specs.errors import CastigateError
from specs.loader import document_word

SCHEMA = "schema"
PORTABLE = "to be portable, keep inputs where all agree: replace NaN and clip before the cast"


def portable_command(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="BACKEND... | RUN [BACKEND]... | schema",
            help="Backends to ask; or a complete run, whose answers are compared: those of all its"
            " backends, or of some; `schema` for the JSON schema of --json.",
        ),
    ],
    pair: Annotated[
        list[str] | None,
        typer.Option(
            "--pair",
            metavar="SOURCE/TARGET",
            help="Two dtypes such as float32/uint8 (repeatable; of a run, all by default).",
        ),
    ] = None,
    document: Annotated[
        list[str] | None,
        typer.Option(
            "--document",
            metavar="NAME|FILE[:VERSION]",
            parser=document_word,
            help="A document that must allow all answers, with house rules too:"
            " onnx-cast+java (repeatable).",
        ),
    ] = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            metavar="SOURCE/TARGET:[LOW,HIGH]",
            help="Exit with 1 unless all agree on the values of this interval (repeatable).",
        ),
    ] = None,
    tier: Annotated[
        TierChoice,
        typer.Option(help="quick: selected inputs; full: all of 32-bit sources."),
    ] = TierChoice.quick,
    json_file: AnswersFileOption = None,
    page_file: AnswersPageOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show on which inputs backends agree, as ranges of values, and what each does elsewhere.

    Any NaN equals any NaN. A document agrees where it allows the answers of all.
    """
    if asked == [SCHEMA]:
        typer.echo(json.dumps(PortablePairs.model_json_schema(), indent=2))
        return
    required = [required_range(each) for each in require or ()]
    pairs = [pair_named(each) for each in pair or ()]
    pairs += [(each.source, each.target) for each in required]
    questions = [
        PairQuestion(
            *each,
            tuple(document or ()),
            tuple(one for one in required if (one.source, one.target) == each),
            whole=tier is TierChoice.full,
        )
        for each in dict.fromkeys(pairs)
    ]
    with ExitStack() as stack:
        found = list(_answered(asked, questions, python or (), timeout, stack))
    if json_file is not None or page_file is not None:
        _write(found, json_file, page_file)
    requirements = [one for each in found for one in each.requirements]
    for one in requirements:
        typer.echo(one.text)
    raise typer.Exit(int(not all(one.is_safe for one in requirements)))


def _answered(
    asked: Sequence[str],
    questions: Sequence[PairQuestion],
    pythons: Sequence[str],
    timeout: float,
    stack: ExitStack,
) -> Iterator[Surveyed]:
    """Yield the result of each question, after printing it; of a run, by its stored answers.

    Without ``questions``, a run's pairs are all that two backends answered. Raise CastigateError if
    a run is to be asked whole, if backends get no question, or if one fails. ``stack`` closes the
    backends.
    """
    if _is_run(asked[0]):
        if any(each.whole for each in questions):
            raise CastigateError("a run keeps the answers of tier quick; name backends for full")
        for each in of_run(open_run(asked[0]), asked[1:], questions):
            yield _shown(each)
        return
    if not questions:
        raise CastigateError("no pair is named; write --pair SOURCE/TARGET, such as float32/uint8")
    if len(asked) < 2 and not questions[0].documents:
        raise CastigateError(
            f"`{asked[0]}` has nothing to agree with; name a second backend, or a --document"
        )
    try:
        backends = load_all(stack, launch_configs(asked, pythons, timeout))
    except CastigateError as error:
        table = known_answers().frameworks
        known = [each for each in asked if each in table and each not in {*installed()}]
        if not known:
            raise
        pair = f"{questions[0].source} {questions[0].target}"
        raise CastigateError(
            f"{error}; recorded answers of {' and '.join(known)} to single values are shown by"
            f" castigate explain {pair} VALUE"
        ) from None
    for question in questions:
        with _progress(question) as bar:
            task = bar.add_task(question.name, total=question.inputs)
            try:
                found = of_backends(backends, question, partial(bar.advance, task))
            except LostBackendError as lost:
                raise CastigateError(f"{question.name}: {lost}; leave it out") from None
        yield _shown(found)


def _is_run(word: str) -> bool:
    return "://" in word or (Path(word).is_dir() and word not in BUILTINS)


def _shown(found: Surveyed) -> Surveyed:
    typer.echo("\n".join(pair_lines(found.pair)))
    if found.pair.differ and found.pair.agree:
        typer.echo(PORTABLE)
    return found


def _write(found: Sequence[Surveyed], json_file: Path | None, page_file: Path | None) -> None:
    versions = {name: each for one in found for name, each in one.versions.items()}
    every = PortablePairs(versions=versions, pairs=tuple(each.pair for each in found))
    if json_file is not None:
        json_file.write_text(every.model_dump_json(exclude_none=True) + "\n", encoding="utf-8")
    if page_file is not None:
        page_file.write_text(page(every, f"{datetime.now(UTC):%Y-%m-%d}"), encoding="utf-8")


def _progress(question: PairQuestion) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    console = Console(stderr=True)
    return Progress(*columns, console=console, disable=not question.whole, transient=True)
