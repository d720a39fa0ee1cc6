"""``castigate inputs``: the inputs on which the quick tier judges a case."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from conformance.commands.options import MaxExamplesOption, SeedOption
from conformance.families import lines_of
from conformance.families.value_spelling import json_text
from conformance.recorded_lines import QUICK_EXAMPLES, QUICK_SEED
from specs.errors import CastigateError
from specs.loader import document_word
from specs.operations import is_cast
from specs.selection import case_named


def inputs_command(
    cases: Annotated[
        list[str], typer.Argument(metavar="CASE", parser=document_word, help="Case ids.")
    ],
    as_json: Annotated[
        bool,
        typer.Option(
            "--json",
            help='Print {"case": …, "input": …} lines: add "output" and pipe them into judge.',
        ),
    ] = False,
    seed: SeedOption = QUICK_SEED,
    max_examples: MaxExamplesOption = QUICK_EXAMPLES,
) -> None:
    """Print the quick tier's inputs, one hex pattern a line (texts as {"text": "…"}).

    Those of other operations than casts are tensors, and need --json.
    """
    # All ids are looked up first: a wrong one leaves nothing on stdout.
    chosen = [case_named(case) for case in cases]
    if not as_json and (of_tensors := [case for case in chosen if not is_cast(case)]):
        raise CastigateError(f"the inputs of {of_tensors[0]} are tensors; add --json to list them")
    for case in chosen:
        for given in lines_of(case).listed(seed, max_examples):
            line = {"case": case.id, "input": given} if as_json else given
            sys.stdout.write(f"{line if isinstance(line, str) else json_text(line)}\n")
