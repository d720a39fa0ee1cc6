"""The options that several commands share."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from conformance.extras import WITH_PAGE, Addon, addon_with_page
from reports.run_store.record import MOST_EXAMPLES
from reports.run_store.storage import check_outlives, folder_at
from specs.errors import CastigateError
from specs.formats import dtype_spelled, format_named
from specs.loader import document_word


def parse_folder(text: str) -> str:
    """Return ``text``, a folder's path or URL, as it is; raise CastigateError if it is unusable.

    That is an empty text, as of a shell variable that is not set, a folder in memory, and what
    ``folder_at`` refuses.
    """
    if not text:
        raise CastigateError("--out is empty; give the path of a folder")
    check_outlives(folder_at(text))
    return text


def parse_local_folder(text: str) -> Path:
    """Return the path of a folder on this machine; raise CastigateError if it is a URL or empty."""
    if "://" in text:
        raise CastigateError(
            f"`{text}` is a URL; give a folder on this machine as --out, and copy it to the store"
        )
    return Path(parse_folder(text))


SEPARATOR = re.compile(r"\s*/\s*|\s+to\s+|\s+")
"""The text that separates two dtypes."""


def pair_named(text: str) -> tuple[str, str]:
    """Parse ``SOURCE/TARGET``, also with `to` or a space between; return Castigate's spellings.

    Raise CastigateError if the text is malformed, or if one of them is no dtype of numbers.
    """
    parts = SEPARATOR.split(text.strip())
    if len(parts) != len(("source", "target")) or not all(parts):
        raise CastigateError(f"pair `{text}` is not SOURCE/TARGET; write one such as float32/int8")
    names = dtype_spelled(parts[0]), dtype_spelled(parts[1])
    for name in names:
        if not format_named(name).is_numeric:
            raise CastigateError(
                f"pair `{text}`: the values of {name} have no order; name dtypes of numbers"
            )
    return names


BackendOption = Annotated[
    list[str] | None,
    typer.Option("--backend", metavar="NAME", help="A backend that answers (repeatable)."),
]
DocumentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--document",
        metavar="NAME|FILE[:VERSION]",
        parser=document_word,
        help="Only this document, or one of your own in a YAML file (repeatable); it counts as"
        " claimed.",
    ),
]
OwnDocumentOption = Annotated[
    list[str] | None,
    typer.Option(
        "--document",
        metavar="FILE",
        parser=document_word,
        help="The YAML file of a document of your own, which is named here (repeatable).",
    ),
]
RulesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--rules",
        metavar="NAME|FILE",
        help="House rules: judge by them what documents leave open (repeatable); see castigate"
        " rules.",
    ),
]
SourceOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DTYPE", parser=dtype_spelled, help="Only casts from this dtype (repeatable)."
    ),
]
TargetOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="DTYPE", parser=dtype_spelled, help="Only casts to this dtype (repeatable)."
    ),
]
ChainsOption = Annotated[
    bool,
    typer.Option("--chains", help="Ask casts in company too: chains of two, in one program."),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Seed of random inputs, tensors and turns.")]
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
AnswersFileOption = Annotated[
    Path | None, typer.Option("--json", metavar="FILE", help="Write all answers there.")
]
AnswersPageOption = Annotated[
    Path | None, typer.Option("--page", metavar="FILE", help="Write a page of all answers.")
]
TimeoutOption = Annotated[
    float, typer.Option("--timeout", metavar="SECONDS", help="Time limit of one answer.")
]
WithOption = Annotated[
    list[Addon] | None,
    typer.Option(
        "--with",
        metavar="NAME",
        parser=addon_with_page,
        help=f"Also make this page (repeatable): {', '.join(WITH_PAGE)}.",
    ),
]
VerboseOption = Annotated[
    bool,
    typer.Option("--verbose", help="Print all findings and tables of verdicts, not one screen."),
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
