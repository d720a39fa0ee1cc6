"""The options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from specs.errors import CastigateError

MOST_EXAMPLES = 100_000_000


def parse_folder(text: str) -> Path:
    """The path of a folder; an empty one, such as an unset variable gives, would be the current."""
    if not text:
        raise CastigateError("--out is empty; give the path of a folder")
    return Path(text)


BackendOption = Annotated[
    list[str] | None,
    typer.Option("--backend", metavar="NAME", help="A backend that answers (repeatable)."),
]
DocumentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--document",
        metavar="NAME[:VERSION]",
        help="Only this document (repeatable); it counts as claimed.",
    ),
]
SourceOption = Annotated[
    str | None, typer.Option(metavar="DTYPE", help="Only casts from this dtype.")
]
TargetOption = Annotated[
    str | None, typer.Option(metavar="DTYPE", help="Only casts to this dtype.")
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of the random inputs.")]
MaxExamplesOption = Annotated[
    int, typer.Option(min=0, max=MOST_EXAMPLES, help="Random inputs per wide source.")
]
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Worker processes (default: one per core).")
]
PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        "--python",
        metavar="NAME=PATH",
        help="The Python in which a backend is installed (repeatable).",
    ),
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Time limit of one answer.")
]


class TierChoice(StrEnum):
    """How many inputs are tested."""

    quick = "quick"
    full = "full"


TierOption = Annotated[
    TierChoice,
    typer.Option(
        help="quick: selected inputs; full: all of 32-bit sources, 2^30 more of wider ones."
    ),
]
