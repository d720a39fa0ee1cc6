"""``castigate explain``: what a case allows for an input, and what backends answer."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import chain, takewhile
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from conformance.commands.options import BackendOption, PythonOption, RulesOption, TimeoutOption
from conformance.driver import drive
from conformance.families import explain_of, family_of
from conformance.families.cast.explanation import case_of_input, conflict_lines, note_lines
from conformance.families.cast.pair_comparison import most_telling, pair_lines
from conformance.families.chains.explanation import (
    ask_roads,
    chain_table_lines,
    explain_chain,
    explain_chain_lines,
    strictest_chain,
)
from conformance.families.family import Question
from oracles.backend.client import Client
from oracles.backend.launch_config import DEFAULT_TIMEOUT, launch_configs
from oracles.backend.loading import close, load_isolated
from oracles.protocol import chain_roads_of
from oracles.registry import Backend
from specs.cases import Case
from specs.chains import Chain
from specs.errors import CastigateError
from specs.questions import ChainQuestion, read_chains, read_question, read_sentence
from specs.selection import decided_by

ShowLines = Callable[[dict[str, Any]], Iterator[str]]


class ExplainCommand(TyperCommand):
    """Takes a value such as -inf for an input; an unknown option begins with two hyphens."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Sort arguments, among which the parser takes every unknown option for an input."""
        known = {"--help", *(name for each in self.params for name in each.opts)}
        for argument in takewhile(lambda each: each != "--", args):
            name = argument.partition("=")[0]
            if name.startswith("--") and name not in known:
                raise CastigateError(f"No such option: {name}; see castigate explain --help")
        ctx.ignore_unknown_options = True
        return super().parse_args(ctx, args)


def explain_command(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="QUESTION [INPUT]...",
            help="What is asked: two dtypes (float32 e4m3fn), or more for a chain of casts (float32"
            " int32 bool), with `to` between them or not; before them a document (onnx-cast float32"
            " int8) or a word of its name (wasm float32 int32); or a case id; or one"
            " quantization, in words (quantize 0.25 by 0.1 as float16 to int8 zero 3)."
            " Then values such as 65520, 0x1.8p3, -inf, nan, true or 0x477ff000, or texts; put --"
            " before a"
            " text that begins with --. For a bitcast: all elements of one tensor, or none.",
        ),
    ],
    backend: BackendOption = None,
    scale: Annotated[
        str | None,
        typer.Option(
            metavar="SCALE", help="The scale of a quantization, or the global scale of blocks."
        ),
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
    if (sentence := read_sentence(words)) is not None:
        if scale is not None or zero is not None:
            raise CastigateError(
                f"`{words[0]}` takes the scale and the zero point as words: by SCALE, zero ZERO"
            )
        case, given, scale, zero = sentence
        words = [case.id, given]
    if (of_chains := read_chains(words)) is not None:
        if scale is not None or zero is not None:
            raise CastigateError("--scale and --zero are for documents of quantization, not chains")
        _explain_chains(of_chains, words, backend or (), python or (), timeout, as_json)
        return
    cases, inputs, is_open = read_question(words)
    cases = [*cases, *decided_by(cases, rules or ())]
    configs = launch_configs(backend or (), python or (), timeout)
    with ExitStack() as stack:
        backends = [load_isolated(name, config) for name, config in configs.items()]
        for loaded in backends:
            stack.callback(close, loaded)
        case = cases[0]
        family = family_of(case)
        if not family.tensors and (scale is not None or zero is not None):
            raise CastigateError(
                f"--scale and --zero are for documents of quantization; {case.document} is none"
            )
        if not family.is_by_input:
            _show(*_explained(case, Question(inputs, scale, zero), backends), as_json)
            return
        if not inputs:
            asked = shlex.join(words)
            raise CastigateError(
                f"`{asked}` needs inputs of {case.source}; write castigate explain {asked} INPUT…"
            )
        # All inputs are read before the first is shown: a wrong one leaves nothing on stdout.
        asked_of = [[case_of_input(each, text) for each in cases] for text in inputs]
        drawn = [
            [_explained(each, Question([text]), backends) for each in of_input]
            for of_input, text in zip(asked_of, inputs, strict=True)
        ]
        found = [[explained for explained, _ in of_input] for of_input in drawn]
        for of_input, explained, shown in zip(asked_of, found, drawn, strict=True):
            if is_open and not as_json:
                typer.echo("\n".join(pair_lines(of_input, explained, backends)))
            else:
                for each in shown:
                    _show(*each, as_json)
        if as_json:
            return
        notes = note_lines(chain.from_iterable(asked_of), chain.from_iterable(found))
        typer.echo("".join(f"{line}\n" for line in notes), nl=False)
        if not is_open:
            broken = (each["rule"] for each, *_ in found)
            typer.echo("".join(f"{line}\n" for line in conflict_lines(case, broken)), nl=False)
        else:
            strictest = most_telling(asked_of[0], found[0])
            named = [f"--backend={name}" for name in backend or ()]
            command = shlex.join(["castigate", "explain", strictest.id, inputs[0], *named])
            typer.echo(f"the rule and its clause: {command}")


def _explained(
    case: Case, question: Question, backends: Sequence[Backend]
) -> tuple[dict[str, Any], ShowLines]:
    """Explain a question about a case with each backend's answer, and return what draws it."""
    explained = explain_of(case)(case, question)
    answers = {each.name: drive(explained.ask(), Client(each)) for each in backends}
    return {**explained.told, "answers": answers}, explained.lines


def _explain_chains(
    asked: ChainQuestion,
    words: Sequence[str],
    backends: Sequence[str],
    pythons: Sequence[str],
    timeout: float,
    as_json: bool,
) -> None:
    """Show what chains allow for inputs, and what backends answer on each of their roads."""
    chains, inputs, is_open = asked
    if not inputs:
        name = shlex.join(words)
        raise CastigateError(
            f"`{name}` needs inputs of {chains[0].source}; write castigate explain {name} INPUT…"
        )
    with ExitStack() as stack:
        loaded = []
        for each, config in launch_configs(backends, pythons, timeout).items():
            loaded.append(load_isolated(each, config))
            stack.callback(close, loaded[-1])
        found = [[_explained_chain(each, text, loaded) for each in chains] for text in inputs]
    for of_input in found:
        if is_open and not as_json:
            typer.echo("\n".join(chain_table_lines(chains, of_input)))
            continue
        for asked_chain, explained in zip(chains, of_input, strict=True):
            _show(explained, partial(explain_chain_lines, asked_chain), as_json)
    if is_open and not as_json:
        strictest = strictest_chain(chains, found[0])
        named = [f"--backend={name}" for name in backends]
        command = shlex.join(["castigate", "explain", strictest.id, inputs[0], *named])
        typer.echo(f"the steps: {command}")


def _explained_chain(chain: Chain, word: str, backends: Sequence[Backend]) -> dict[str, Any]:
    """Explain an input of a chain, with the answer of each backend on each of its roads."""
    told = explain_chain(chain, word)
    answers = {}
    for each in backends:
        roads = chain_roads_of(each.oracle)
        if roads:
            answers[each.name] = drive(ask_roads(chain, told, roads), Client(each))
        else:
            answers[each.name] = {"unsupported": f"{each.name} makes no chains of casts"}
    return told | {"answers": answers}


def _show(explained: dict[str, Any], draw: ShowLines, as_json: bool) -> None:
    for line in [json.dumps(explained, ensure_ascii=False)] if as_json else draw(explained):
        typer.echo(line)
