"""``castigate explain``: what a case allows for an input, and what backends answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, suppress
from itertools import takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from conformance.commands.options import BackendOption, PythonOption, RulesOption, TimeoutOption
from conformance.driver import drive
from conformance.families import explain_of, family_of, sentence_of, several_of
from conformance.families.cast.explanation import case_of_input, conflict_lines, note_lines
from conformance.families.cast.pair_comparison import (
    ANYTHING,
    Named,
    most_telling,
    pair_lines,
    recorded_answers,
    recorded_json,
)
from conformance.families.family import (
    INSTEAD_OF_SCALES,
    QUESTION_HELP,
    SCALE_HELP,
    WITH_SCALES,
    WrittenQuestion,
)
from conformance.families.value_spelling import datum
from conformance.judging.asking import Ask
from conformance.question_words import names_in, question_words, separate_values
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.client import Client
from oracles.backend.loading import launch_configs, load_all
from oracles.registry import Backend
from reports.behaviors.known_answers import outdated
from specs.cases import Case
from specs.errors import CastigateError, did_you_mean
from specs.formats import format_named
from specs.loader import document_word, typed_name
from specs.questions import documents_called, read_question
from specs.selection import decided_by

ShowLines = Callable[[dict[str, Any]], Iterator[str]]


class ExplainCommand(TyperCommand):
    """A command in which an unknown option with one hyphen, such as ``-inf``, is an input."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments; raise CastigateError at an unknown option that begins with two hyphens.

        Every other unknown option is an input: ``ctx`` is set to ignore such options.
        """
        known = {"--help", *(name for each in self.params for name in each.opts)}
        for argument in takewhile(lambda each: each != "--", args):
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in known:
                meant = did_you_mean(name, known)
                raise CastigateError(f"No such option: {name}; {meant}see castigate explain --help")
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args)


def explain_command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="QUESTION [INPUT]...",
            help=QUESTION_HELP,
        ),
    ],
    backend: BackendOption = None,
    scale: Annotated[
        str | None,
        typer.Option(metavar="SCALE", help=SCALE_HELP),
    ] = None,
    zero: Annotated[
        str | None, typer.Option(metavar="ZERO", help="The zero point, if there is one.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    rules: RulesOption = None,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """Show what documents allow for inputs, by which rule, and what each backend answers."""
    words = [document_word(words[0]), *words[1:]]
    if (sentence := sentence_of(words)) is not None:
        if scale is not None or zero is not None:
            raise CastigateError(
                f"`{words[0]}` takes the scale and the zero point as words: by SCALE, zero ZERO"
            )
        case, given, divisor, offset = sentence
        with ExitStack() as stack:
            loaded = load_all(stack, launch_configs(backend or (), python or (), timeout))
            written = WrittenQuestion([given], divisor, offset)
            _show(*_explained(case, written, loaded, is_brief=True), as_json)
        return
    interest = names_in(words)
    words = question_words(words)
    if (asks := several_of(words)) is not None:
        question = asks(words, scale, zero)
        with ExitStack() as stack:
            loaded = load_all(stack, launch_configs(backend or (), python or (), timeout))
            for line in question(_answer, loaded, as_json):
                typer.echo(line)
        return
    cases, inputs, is_open = read_question(words)
    cases = [*cases, *decided_by(cases, rules or ())]
    # Of what the table of known answers has, an installed framework of another version is asked.
    named = backend or (outdated() if is_open else [])
    configs = launch_configs(named, python or (), timeout)
    with ExitStack() as stack:
        backends = load_all(stack, configs)
        case = cases[0]
        family = family_of(case)
        if not family.tensors and (scale is not None or zero is not None):
            raise CastigateError(f"{WITH_SCALES}; {INSTEAD_OF_SCALES}")
        if not family.is_by_input:
            _show(*_explained(case, WrittenQuestion(inputs, scale, zero), backends), as_json)
            return
        if not inputs:
            asked = shlex.join([typed_name(words[0])[0], *words[1:]])
            raise CastigateError(
                f"`{asked}` needs inputs of {case.source}; write castigate explain {asked} INPUT…"
            )
        if format_named(case.source).is_numeric:
            inputs = separate_values(inputs)
        asked_of: list[list[Case]] = []
        drawn: list[list[tuple[dict[str, Any], ShowLines]]] = []
        refused: list[CastigateError] = []
        read: list[str] = []
        for text in inputs:
            try:
                of_input = [case_of_input(each, text) for each in cases]
                drawn.append(
                    [_explained(each, WrittenQuestion([text]), backends) for each in of_input]
                )
                asked_of.append(of_input)
                read.append(text)
            except CastigateError as error:
                refused.append(_with_hint(error, cases[0], text) if is_open else error)
        if not asked_of:
            raise refused[0]
        found = [[explained for explained, _ in of_input] for of_input in drawn]
        for of_input, explained, shown in zip(asked_of, found, drawn, strict=True):
            known = is_open and not backend
            recorded = recorded_answers(of_input[0], explained[0], named) if known else []
            if is_open and not as_json:
                lines = pair_lines(
                    of_input, explained, backends, recorded, interest, is_graded=bool(backend)
                )
                typer.echo("\n".join(lines))
            else:
                kept = {"recorded": recorded_json(of_input[0].target, recorded)} if known else {}
                for told, draw in shown:
                    _show(told | kept, draw, as_json)
        if as_json:
            _report(refused)
            return
        notes = note_lines(
            (case for of_input in asked_of for case in of_input),
            (explained for of_input in found for explained in of_input),
        )
        typer.echo("".join(f"{line}\n" for line in notes), nl=False)
        if not is_open:
            broken = (each["rule"] for each, *_ in found)
            typer.echo("".join(f"{line}\n" for line in conflict_lines(case, broken)), nl=False)
            if not backends and any(each["allowed"] == ANYTHING for each, *_ in found):
                pair = [case.source, case.target, read[0]]
                typer.echo(f"what frameworks answer: {shlex.join(['castigate', 'explain', *pair])}")
        else:
            strictest = _case_of_clause(asked_of, found, interest)
            options = [f"--backend={name}" for name in backend or ()]
            of_case = [
                text for text, of_input in zip(read, asked_of, strict=True) if strictest in of_input
            ]
            case_id, *files = typed_name(strictest.id)
            command = shlex.join(["castigate", "explain", case_id, *of_case, *files, *options])
            typer.echo(f"the rule and its clause: {command}")
        _report(refused)


def _case_of_clause(
    asked_of: Sequence[Sequence[Case]],
    found: Sequence[Sequence[dict[str, Any]]],
    named: Named,
) -> Case:
    """Return the case whose clause people want to read: it decides an input most strictly.

    Only documents called like a framework that the question names count, if there are any.
    """
    pairs = [
        each
        for of_input, explained in zip(asked_of, found, strict=True)
        for each in zip(of_input, explained, strict=True)
    ]
    called = {name for word in named.words for name in documents_called(word)}
    pairs = [each for each in pairs if each[0].document in called] or pairs
    cases, told = zip(*pairs, strict=True)
    return most_telling(cases, told)


def _with_hint(error: CastigateError, case: Case, text: str) -> CastigateError:
    """Return the error about an input, with the question that asks the other way if that works."""
    form = format_named(case.target)
    if form.kind != "text" and not text.startswith("0x"):
        with suppress(CastigateError):
            datum(form, text, "input")
            asked = shlex.join([case.target, case.source, text])
            return CastigateError(f"{error}; the other way is castigate explain {asked}")
    return error


def _report(refused: Sequence[CastigateError]) -> None:
    if refused:
        raise CastigateError("; ".join(map(str, refused)))


def _answer(asking: Ask[Any], backend: Backend) -> Any:
    return drive(asking, Client(backend))


def _explained(
    case: Case, question: WrittenQuestion, backends: Sequence[Backend], is_brief: bool = False
) -> tuple[dict[str, Any], ShowLines]:
    """Return a case's explanation with ``answers`` by backend, and the function that draws it.

    With ``is_brief`` the function yields the few lines that answer a sentence.
    """
    explained = explain_of(case)(case, question)
    answers = {each.name: _answer(explained.ask(), each) for each in backends}
    drawn = explained.brief if is_brief and explained.brief else explained.lines
    return {**explained.told, "answers": answers}, drawn


def _show(explained: dict[str, Any], draw: ShowLines, as_json: bool) -> None:
    for line in [json.dumps(explained, ensure_ascii=False)] if as_json else draw(explained):
        typer.echo(line)
