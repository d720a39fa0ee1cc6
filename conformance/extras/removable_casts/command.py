"""``castigate chains``: which casts may be left out of a chain."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated

import typer

from conformance.commands.options import AnswersFileOption, AnswersPageOption
from conformance.extras.removable_casts import removable_page, rewrites_page
from conformance.extras.removable_casts.judged_rewrites import judged_rewrites
from conformance.extras.removable_casts.removable_casts import (
    RemovableCast,
    RemovableCasts,
    editions,
    table_of,
)
from conformance.families.chains.questions import read_chains
from conformance.question_words import ARROWS
from specs.chains import Chain, chain_named, has_chains
from specs.errors import CastigateError
from specs.formats import either
from specs.loader import document_and_version
from specs.model.strict_model import StrictModel
from specs.questions import TO

REWRITES, SCHEMA = "rewrites", "schema"


def chains_command(
    asked: Annotated[
        list[str],
        typer.Argument(
            metavar="DOCUMENT[:VERSION] | CHAIN... | rewrites | schema",
            help="All chains of two casts of a document; some, as onnx-cast/float32/int32/bool, or"
            " one in words, as explain reads it (fp32 to bf16 to int8);"
            " `rewrites` for what optimizers leave out; `schema` for the JSON schema of --json.",
        ),
    ],
    json_file: AnswersFileOption = None,
    page_file: AnswersPageOption = None,
) -> None:
    """Say which casts may be left out of a chain, by the rules of a document, for every input.

    The answers were decided before, by trying all inputs or by a solver, and are shipped.
    """
    match asked:
        case [word] if word == SCHEMA:
            typer.echo(json.dumps(RemovableCasts.model_json_schema(), indent=2))
        case [word] if word == REWRITES:
            every = judged_rewrites()
            _write(every, partial(rewrites_page.page, every), json_file, page_file)
            typer.echo("\n".join(rewrites_page.summary_lines((*every.rules, *every.installed))))
        case [one] if one.endswith(".onnx"):
            raise CastigateError(
                f"`{one}` is a model, and chains are casts; name those that meet in it, such as"
                " onnx-cast/float32/int32/bool"
            )
        case [one] if len(one.split()) == 1 and "/" not in one:
            _document(one, json_file, page_file)
        case _ if page_file:
            raise CastigateError("--page takes a whole document; name DOCUMENT:VERSION")
        case _:
            found = [one for chain in _chains(asked) for one in _looked_up(chain)]
            _write_found(found, json_file)
            for each in found:
                typer.echo("\n".join(removable_page.found_lines(each)))


def _document(name: str, json_file: Path | None, page_file: Path | None) -> None:
    """Print a summary of a document's chains of two casts, and write the files that are given.

    Without a version in ``name``, the last one is taken. Raises CastigateError if the document has
    no chains.
    """
    document, version = document_and_version(name, takes_yardsticks=True)
    if not has_chains(document.name):
        raise CastigateError(
            f"{document.name} has no chains: it is not about casts, or repeats another document"
        )
    every = table_of(f"{document.name}:{version or list(document.entry.versions)[-1]}")
    _write(every, partial(removable_page.page, every), json_file, page_file)
    typer.echo(f"{every.edition}: {len(every.chains):,} chains of two casts")
    typer.echo("\n".join(removable_page.summary_lines(every.chains)))


def _chains(asked: Sequence[str]) -> list[Chain]:
    """Read chains by their ids, or one in words, of each document that has it and a table.

    Raise CastigateError if there is none, or if there are values.
    """
    if all("/" in each for each in asked):
        return [chain for each in asked for chain in _chains_called([each])]
    words = [*asked[0].split(), *asked[1:]]
    return _chains_called([TO if each in ARROWS else each for each in words])


def _chains_called(words: Sequence[str]) -> list[Chain]:
    question = read_chains(words)
    if question is None:
        raise CastigateError(
            f"`{' '.join(words)[:200]}` is no chain of casts; name one document, or three dtypes or"
            " more, such as onnx-cast/float32/int32/bool"
        )
    if question.inputs:
        raise CastigateError(
            f"chains are about every input, and `{question.inputs[0]}` is one; castigate explain"
            f" {' '.join(words)} answers it"
        )
    if len(question.chains) == 1:
        return question.chains
    shipped = [each for each in question.chains if each.edition in editions()]
    if not shipped:
        raise CastigateError(
            f"no document that has this chain has a table; those with one are {either(editions())}"
        )
    if left := [each.edition for each in question.chains if each not in shipped]:
        typer.echo(f"without a table of this chain: {', '.join(left)}", err=True)
    return shipped


def _looked_up(chain: Chain) -> list[RemovableCast]:
    """Look up each two casts of a chain that meet in the table of its edition.

    Raise CastigateError if they are not there.
    """
    every = table_of(chain.edition)
    names = [Chain(pair).id for pair in pairwise(chain.steps)]
    known = {each.chain: each for each in every.chains if each.chain in names}
    if missing := [name for name in names if name not in known]:
        raise CastigateError(
            f"the table of {every.edition} has no `{missing[0]}`: no two casts that it lists"
        )
    return [known[name] for name in names]


def _write_found(found: Sequence[RemovableCast], json_file: Path | None) -> None:
    """Write the answers about some chains; raise CastigateError if they are of several editions."""
    if json_file is None:
        return
    of = [*dict.fromkeys(chain_named(each.chain).edition for each in found)]
    if len(of) > 1:
        raise CastigateError(f"--json takes chains of one edition, and these are of {either(of)}")
    [edition] = of
    table = table_of(edition)
    some = RemovableCasts(suite=table.suite, edition=edition, date=table.date, chains=tuple(found))
    _write(some, str, json_file, None)


def _write(
    every: StrictModel, page: Callable[[], str], json_file: Path | None, page_file: Path | None
) -> None:
    if json_file is not None:
        json_file.write_text(every.model_dump_json(exclude_none=True) + "\n", encoding="utf-8")
    if page_file is not None:
        page_file.write_text(page(), encoding="utf-8")
