"""``castigate inputs``: the inputs on which the quick tier judges a case."""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from conformance.commands.options import MaxExamplesOption, SeedOption
from conformance.judging.quick_inputs import inputs_of
from conformance.running.selection import case_named
from specs.ruling import ruling


def inputs_command(
    cases: Annotated[list[str], typer.Argument(metavar="CASE", help="Case ids.")],
    seed: SeedOption = 0,
    max_examples: MaxExamplesOption = 1000,
) -> None:
    """Print the quick tier's inputs, one hex pattern a line (texts as {"text": "…"})."""
    # All ids are looked up first: a wrong one leaves nothing on stdout.
    for case, rules in [(case, ruling(case)) for case in map(case_named, cases)]:
        inputs = inputs_of(case, rules, seed, max_examples)
        source = rules.source
        if source.kind == "text":
            lines = [json.dumps({"text": text}, ensure_ascii=False) for text in inputs.tolist()]
        elif source.bits > 64:
            lines = [source.hexadecimal(int.from_bytes(one.tobytes(), "little")) for one in inputs]
        else:
            lines = [source.hexadecimal(code) for code in inputs.tolist()]
        sys.stdout.write("".join(f"{line}\n" for line in lines))
