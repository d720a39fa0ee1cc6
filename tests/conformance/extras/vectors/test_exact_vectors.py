"""Files of ``castigate export vectors`` equal files that a writer on fractions makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from tests.conformance.extras.vectors.exact_vectors import (
    E4M3FN,
    E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    Form,
    Line,
    lines_of,
)
from tests.conformance.extras.vectors.exporting import IEEE, SATURATING, TO_INFINITY, exported
from tests.conformance.extras.vectors.reading import read

CASTS = [
    (FLOAT16, E4M3FN, SATURATING),
    (FLOAT32, E4M3FN, SATURATING),
    (FLOAT64, E4M3FN, SATURATING),
    (FLOAT16, E5M2, TO_INFINITY),
    (FLOAT32, FLOAT16, IEEE),
    (FLOAT64, FLOAT16, IEEE),
]


def joined(lines: Iterable[Line]) -> Iterator[Line]:
    """Lines with neighbors that allow the same as one."""
    before: Line | None = None
    for line in lines:
        if before is not None and before[2:] == line[2:] and before.hi + 1 == line.lo:
            line = line._replace(lo=before.lo)
        elif before is not None:
            yield before
        before = line
    if before is not None:
        yield before


@pytest.mark.parametrize(
    ("source", "target", "name"), CASTS, ids=lambda each: getattr(each, "name", "")
)
def test_a_file_says_what_fractions_say(
    tmp_path: Path, source: Form, target: Form, name: str
) -> None:
    found = read(exported(tmp_path, name.format(source.name, target.name)))
    assert (found.source, found.target, found.covers) == (source.name, target.name, "all")
    assert {each.other for each in found.lines} == {None}
    lines = (Line(*each[:6]) for each in found.lines)
    assert [*joined(lines)] == [*joined(lines_of(source, target))]
