"""Which casts of a chain may be left out: the tables that the lab made, one for each edition.

In A→B→C the cast to B may be left out if the chain allows every result that the cast A→C allows.
The same holds for whatever an optimizer makes of a chain: fewer casts, other ones, or none. The
answer is one of these:

- ``always``: for every input, and the chain leaves none open; or what is left are casts of the
chain, so that open inputs are answered as before;
- ``defined``: for every input, but some are open, so that a framework may answer otherwise then;
- ``unlisted``: the document lists no cast A→C, so that nothing can take the place of the two;
- ``never``: for some input the casts that are left may give what the chain does not allow. The
simplest such input found is the counterexample, and ``level`` says how strictly the chain decides
it;
- ``unknown``: the solver did not decide in time.

Where a cast may be left out, the chain may still require an answer that the casts which are left
only recommend. ``weakening`` is an input at which they do.

To decide all chains of an edition takes hours and a solver, so that ``lab.removable`` does it and
writes ``removable/``; what is here reads it.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from specs import VERSION
from specs.errors import CastigateError
from specs.model.strict_model import StrictModel

Removable = Literal["always", "defined", "never", "unlisted", "unknown"]
Method = Literal["all inputs", "solver", "counterexample", "the document's list"]


class Counterexample(StrictModel):
    """An input for which the casts that are left may give what the chain does not allow.

    ``chain`` has what the chain allows, ``instead`` what the casts that are left allow.
    """

    input: str
    chain: tuple[str, ...]
    instead: tuple[str, ...]


class Weakening(StrictModel):
    """An input whose answer the chain requires, and the casts that are left only recommend."""

    input: str
    chain: Literal["required"] = "required"
    instead: Literal["recommended"] = "recommended"


class RemovableCast(StrictModel):
    """Whether other casts may stand in the place of a chain, and how that is known.

    ``instead`` is the direct cast or a chain, or empty if the input is left as it is. If other
    casts may not stand there, ``level`` is the level at which the chain decides the counterexample.
    If they may, ``strictness`` says whether they require as much as the chain for every input;
    ``weaker`` has a ``weakening``.
    """

    chain: str
    instead: str
    removable: Removable
    known_by: Method
    level: Literal["", "required", "recommended"] = ""
    counterexample: Counterexample | None = None
    strictness: Literal["", "kept", "weaker", "unknown"] = ""
    weakening: Weakening | None = None


class RemovableCasts(StrictModel):
    """The answers for all chains of two casts of an edition, as an optimizer may ship them."""

    suite: str = VERSION
    edition: str
    date: str
    chains: tuple[RemovableCast, ...]


FOLDER = Path(__file__).with_name("removable")
SCHEMA = pa.schema(
    [
        *((name, pa.string()) for name in ("chain", "instead", "removable", "known_by", "level")),
        *((name, pa.string()) for name in ("strictness", "weakening", "counterexample")),
        *((name, pa.list_(pa.string())) for name in ("allowed", "allowed_instead")),
    ]
)


def write_table(every: RemovableCasts, folder: Path) -> Path:
    """Write an edition's answers into a folder, made if missing; return the Parquet file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _file_name(every.edition)
    told = {"edition": every.edition, "suite": every.suite, "date": every.date}
    table = pa.Table.from_pylist([*map(_row, every.chains)], SCHEMA.with_metadata(told))
    pq.write_table(table, path, compression="zstd")
    return path


@cache
def table_of(edition: str, folder: Path = FOLDER) -> RemovableCasts:
    """Read the answers of an edition; raise CastigateError if no table of it is in the folder."""
    path = folder / _file_name(edition)
    if not path.exists():
        known = ", ".join(editions(folder)) or "none"
        raise CastigateError(
            f"no table of the chains of {edition} is shipped (there are: {known}); in a checkout,"
            f" `python -m lab.removable {edition}` makes one, in up to an hour; castigate explain"
            " compares a chain and its direct cast for single inputs"
        )
    table = pq.read_table(path)
    told = {name.decode(): value.decode() for name, value in table.schema.metadata.items()}
    return RemovableCasts(
        suite=told["suite"],
        edition=told["edition"],
        date=told["date"],
        chains=tuple(map(_removable_cast, table.to_pylist())),
    )


def editions(folder: Path = FOLDER) -> list[str]:
    """Return the editions, such as ``onnx-cast:25``, that have a table in the folder."""
    return sorted(path.stem.replace("@", ":") for path in folder.glob("*.parquet"))


def _file_name(edition: str) -> str:
    return f"{edition.replace(':', '@')}.parquet"


def _row(found: RemovableCast) -> dict[str, Any]:
    given, weakened = found.counterexample, found.weakening
    return {
        **{name: getattr(found, name) for name in SCHEMA.names[:6]},
        "weakening": weakened and weakened.input,
        "counterexample": given and given.input,
        "allowed": given and given.chain,
        "allowed_instead": given and given.instead,
    }


def _removable_cast(row: dict[str, Any]) -> RemovableCast:
    given, weakened = row["counterexample"], row["weakening"]
    return RemovableCast(
        **{name: row[name] for name in SCHEMA.names[:6]},
        counterexample=given
        and Counterexample(
            input=given, chain=tuple(row["allowed"]), instead=tuple(row["allowed_instead"])
        ),
        weakening=weakened and Weakening(input=weakened),
    )
