"""Prints the result of a check: a sentence, a table of tensors, examples, and what decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from conformance.extras.checkpoints.check import (
    ROUNDING,
    YARDSTICK,
    CheckedCheckpoint,
    Effects,
    Example,
)
from reports.counterexample.drawing import datum_with_value
from reports.findings.finding_text import counted
from reports.outputs.table import in_columns
from specs.formats import format_named
from specs.plain_text import plain_line

SCREENFUL = 20
"""The most tensors that are listed without ``--verbose``."""
LONGEST_NAME = 60
COLUMNS: dict[str, str] = {
    "changed": "changed",
    "out_of_range": "out of range",
    "saturated": "saturated",
    "to_nan": "to NaN",
    "to_infinity": "to infinity",
    "to_zero": "to zero",
    "to_subnormal": "to subnormal",
    "differing": "backends differ",
}
"""The columns of the table by the field of ``Effects``; those without any element are left out."""


def result_lines(checked: CheckedCheckpoint, shows_all: bool) -> Iterator[str]:
    """Yield the lines of a result; without ``shows_all``, the table has ``SCREENFUL`` tensors."""
    yield _sentence(checked)
    yield ""
    yield from _table(checked, shows_all)
    yield ""
    elements: dict[tuple[str, tuple[int, ...]], list[Example]] = {}
    for each in checked.examples:
        elements.setdefault((each.tensor, each.index), []).append(each)
    for examples in elements.values():
        yield from _example_lines(checked, examples)
    yield from _notes(checked)


def _sentence(checked: CheckedCheckpoint) -> str:
    total = checked.total
    touched = sum(each.effects.changed > 0 for each in checked.tensors)
    share = f" ({_share(total.changed, total.elements)})" if total.changed else ""
    line = (
        f"{plain_line(checked.path)}: {total.changed:,} of"
        f" {counted(total.elements, 'element')}{share} change in value as {checked.target}, in"
        f" {touched:,} of {counted(len(checked.tensors), 'tensor')}"
    )
    names = [*checked.versions]
    if len(names) > 1:
        together = f"{', '.join(names[:-1])} and {names[-1]}"
        line += (
            f"; {together} differ on {counted(total.differing, 'element')}"
            if total.differing
            else f"; {together} answer alike"
        )
    for name in names:
        if total.breaking[name]:
            verb = "is" if total.breaking[name] == 1 else "are"
            line += f"; {counted(total.breaking[name], 'answer')} of {name} {verb} not allowed"
    if names and not any(total.breaking.values()):
        line += "; all answers are allowed"
    return line


def _share(part: int, whole: int) -> str:
    """Return a share in percent that says 0 % and 100 % only where this is exact."""
    percent = 100 * part / whole
    if part < whole and percent > 99.95:
        return "over 99.9%"
    return "under 0.1%" if part and percent < 0.05 else f"{percent:.1f}%"


def _table(checked: CheckedCheckpoint, shows_all: bool) -> Iterator[str]:
    columns: list[tuple[str, Callable[[Effects], int]]] = [
        (title, lambda effects, name=name: getattr(effects, name))  # type: ignore[misc]
        for name, title in COLUMNS.items()
        if name == "changed" or getattr(checked.total, name)
    ]
    columns += [
        (_not_allowed(name), lambda effects, name=name: effects.breaking[name])  # type: ignore[misc]
        for name, count in checked.total.breaking.items()
        if count
    ]

    def row(name: str, dtype: str, shape: str, effects: Effects) -> list[str]:
        numbers = [effects.elements, *(value(effects) for _, value in columns)]
        return [name, dtype, shape, *(f"{each:,}" for each in numbers)]

    shown = checked.tensors if shows_all else checked.tensors[:SCREENFUL]
    rows = [["tensor", "dtype", "shape", "elements", *(title for title, _ in columns)]]
    for each in shown:
        name = plain_line(each.name, LONGEST_NAME)
        rows.append(row(name, each.dtype, _shape(each.shape), each.effects))
    if len(checked.tensors) > 1:
        rows.append(row("all", "", "", checked.total))
    yield from in_columns(rows, range(3, len(rows[0])))
    if len(shown) < len(checked.tensors):
        yield f"and {len(checked.tensors) - len(shown):,} more; --verbose shows all"


def _shape(sizes: Sequence[int]) -> str:
    return "×".join(map(str, sizes)) or "scalar"


def _not_allowed(backend: str) -> str:
    return f"{backend} not allowed"


def _example_lines(checked: CheckedCheckpoint, examples: Sequence[Example]) -> Iterator[str]:
    """Yield the lines of an element, which is an example of one effect or more."""
    example = examples[0]
    source, target = format_named(example.dtype), format_named(checked.target)
    titles = []
    for each in examples:
        effect, _, backend = each.effect.partition(":")
        titles.append(_not_allowed(backend) if backend else COLUMNS[effect])
    place = f"[{', '.join(map(str, example.index))}]"
    given = datum_with_value(source, example.pattern)
    yield f"{', '.join(titles)}: {plain_line(example.tensor, LONGEST_NAME)}{place} is {given}"
    allowed = [
        datum_with_value(target, int(each, 16)) if each.startswith("0x") else each
        for each in example.allowed
    ]
    yield f"  allowed {' or '.join(allowed)}"
    for answer in dict.fromkeys(example.answers.values()):
        names = [name for name, each in example.answers.items() if each == answer]
        yield f"  {', '.join(names)} {datum_with_value(target, answer)}"


def _notes(checked: CheckedCheckpoint) -> Iterator[str]:
    """Yield what decided, and what was not checked."""
    if checked.has_document:
        cases = (case for each in checked.decided_by.values() for case in each)
        yield f"decided by {', '.join(cases)}"
    else:
        yield f"decided by the yardstick {YARDSTICK}: the exact value, rounded to {ROUNDING}"
        if checked.total.out_of_range:
            yield (
                "  out of range documents differ, so the largest value, NaN and infinity are"
                " allowed; --document decides"
            )
    if checked.others:
        kinds = Counter(plain_line(each.dtype, LONGEST_NAME) for each in checked.others)
        words = ", ".join(f"{count:,} of {dtype}" for dtype, count in kinds.most_common())
        first = plain_line(checked.others[0].name, LONGEST_NAME)
        more = ", …" if len(checked.others) > 1 else ""
        yield f"not checked: {counted(len(checked.others), 'tensor')} ({words}): {first}{more}"


def result_record(checked: CheckedCheckpoint) -> dict[str, Any]:
    """Return the object of ``--json``."""
    found = asdict(checked)
    found["others"] = [each._asdict() for each in checked.others]
    return {"is_safe": checked.is_safe, **found}
