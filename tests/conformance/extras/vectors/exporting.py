"""Files of single casts, as ``castigate export vectors`` writes them."""

from __future__ import annotations

from pathlib import Path

from conformance.extras.vectors.command import LIMIT, write_vectors
from specs.editions import edition
from specs.loader import document_named

IEEE = "ieee-casts:2019/{}/{}/round:nearest-even"
EXACT = "ieee-casts:2019/{}/{}"
SATURATING = "small-floats:1/{}/{}/round:nearest-even/overflow:saturate"
TO_INFINITY = "small-floats:1/{}/{}/round:nearest-even/overflow:inf"


def exported(folder: Path, case: str) -> Path:
    """Write the file of a case into an empty folder, and return its path."""
    document, _, version = case.partition("/")[0].partition(":")
    cases = edition(document_named(document), version).cases()
    [found] = [each for each in cases if each.id == case]
    index = write_vectors(folder, [found], LIMIT, 1, with_headers=False)
    [file] = [each.file for each in index.files if each.kind == "casts"]
    return folder / file
