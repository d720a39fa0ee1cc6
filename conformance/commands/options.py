"""The options that several commands have, each written once."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

BackendOption = Annotated[
    list[str] | None,
    typer.Option("--backend", metavar="NAME", help="Who answers (repeatable)."),
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
JobsOption = Annotated[
    int | None, typer.Option(min=1, help="Worker processes (default: one per core).")
]
PythonOption = Annotated[
    list[str] | None,
    typer.Option(
        "--python", metavar="NAME=PATH", help="The Python that a backend lives in (repeatable)."
    ),
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="What one answer may take.")
]


class TierWord(StrEnum):
    """How much is asked."""

    quick = "quick"
    full = "full"


TierOption = Annotated[
    TierWord,
    typer.Option(
        help="quick: the telling inputs; full: all of 32-bit sources, 2^30 more of wider ones."
    ),
]
