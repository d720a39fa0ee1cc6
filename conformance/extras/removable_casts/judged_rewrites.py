"""Reads the table in which ``lab.removable`` lists how optimizers rewrite chains, rule by rule."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from conformance.extras.removable_casts.removable_casts import FOLDER, RemovableCast
from specs import VERSION
from specs.errors import CastigateError
from specs.model.strict_model import StrictModel

FILE = "rewrites.json"


class Rewritten(StrictModel):
    """The changes that a rule, or an installed optimizer, makes to the chains of an edition.

    ``asked`` is the number of chains. ``answers`` counts those that it changes, by the answer on
    whether it may, such as ``never required``. ``worst`` is one of those that it may not change, or
    None. ``weaker`` counts allowed changes after which less is required of some input. ``refused``
    counts the chains for which the optimizer makes no model.
    """

    name: str
    edition: str
    asked: int
    refused: int = 0
    answers: dict[str, int]
    weaker: int = 0
    worst: RemovableCast | None = None


class RewrittenChains(StrictModel):
    """Judged rewrites of rules with an edition and installed optimizers, as the file has them."""

    suite: str = VERSION
    date: str
    rules: tuple[Rewritten, ...]
    installed: tuple[Rewritten, ...]


def write_rewrites(every: RewrittenChains, folder: Path) -> Path:
    """Write the judged rewrites to ``FILE`` in a folder that exists; return the file's path."""
    path = folder / FILE
    path.write_text(every.model_dump_json(exclude_none=True, indent=1) + "\n", encoding="utf-8")
    return path


@cache
def judged_rewrites() -> RewrittenChains:
    """Read the judged rewrites that are shipped; raise CastigateError if there are none."""
    path = FOLDER / FILE
    if not path.exists():
        raise CastigateError(
            f"{FILE} is not shipped; docs/atlas/rewrites.md has what was found, and in a checkout"
            " `python -m lab.removable rewrites` makes it anew"
        )
    return RewrittenChains.model_validate_json(path.read_bytes())
