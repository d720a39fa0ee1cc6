"""The result of a check, and how it prints: a sentence, a table, examples, and what decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

from conformance.api.results import Printable
from conformance.extras.checkpoints.stored_tensors import OtherTensor
from reports.findings.finding_text import counted, datum_words
from reports.outputs.table import in_columns
from specs.formats import Format, format_named
from specs.plain_text import plain_line

if TYPE_CHECKING:
    import pyarrow as pa

YARDSTICK, VERSION = "small-floats", "1"
"""The yardstick that decides if no document does: ``specs/yardsticks/small_floats.yaml``."""
ROUNDING = "nearest-even"
SCREENFUL = 20
"""The most tensors that are listed without ``--verbose``."""
LONGEST_NAME = 60
MOST_NAMED = 8
"""The most tensors that are named of those that were not checked."""
COLUMNS: dict[str, str] = {
    "changed": "changed",
    "out_of_range": "out of range",
    "saturated": "saturated",
    "to_nan": "to NaN",
    "to_infinity": "to infinity",
    "to_zero": "to zero",
    "to_subnormal": "to subnormal",
    "nans": "NaN",
    "infinities": "infinite",
    "subnormals": "subnormal",
    "differing": "backends differ",
}
"""The columns of the table by the field of ``Effects``; those without any element are left out."""


@dataclass(frozen=True)
class Effects:
    """How many elements a cast affects, and in which way; one element may count several times.

    ``changed``: the value is none of the target's. ``out_of_range``: it is beyond the largest value
    after rounding, or an infinity that the target lacks. ``to_zero``: it is not zero and rounds to
    zero. ``to_subnormal``: the result is subnormal, the element was not. Where one case decides,
    ``saturated``, ``to_nan`` and ``to_infinity`` count what becomes of those out of range.
    ``nans``, ``infinities`` and ``subnormals`` count what elements are before the cast.
    ``differing``: not all backends give the same answer. ``breaking``: by backend, the answers that
    the document or the yardstick does not allow.
    """

    elements: int = 0
    changed: int = 0
    out_of_range: int = 0
    to_zero: int = 0
    to_subnormal: int = 0
    saturated: int = 0
    to_nan: int = 0
    to_infinity: int = 0
    nans: int = 0
    infinities: int = 0
    subnormals: int = 0
    differing: int = 0
    breaking: Mapping[str, int] = field(default_factory=dict)

    def plus(self, other: Effects) -> Effects:
        """Return the effects on two sets of elements together: each count is a sum."""
        names = [each.name for each in fields(self) if each.name != "breaking"]
        sums = {name: getattr(self, name) + getattr(other, name) for name in names}
        backends = dict.fromkeys([*self.breaking, *other.breaking])
        broken = {
            name: self.breaking.get(name, 0) + other.breaking.get(name, 0) for name in backends
        }
        return Effects(**sums, breaking=broken)


@dataclass(frozen=True)
class TensorChanges:
    """A tensor of a checkpoint, and how many of its elements a cast changes, by effect."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    effects: Effects


@dataclass(frozen=True)
class ElementExample:
    """An element of a tensor on which a cast has an effect.

    ``effect`` is a field of ``Effects``, or ``breaking:BACKEND``. ``pattern`` has the element's
    bits in hex, ``allowed`` what may come out (patterns, or names such as ``any-nan``), and
    ``answers`` the pattern that each backend returns.
    """

    effect: str
    tensor: str
    dtype: str
    index: tuple[int, ...]
    pattern: str
    allowed: tuple[str, ...]
    answers: Mapping[str, str]


@dataclass(frozen=True, repr=False)
class CheckedCheckpoint(Printable):
    """The result of a check: each tensor's effects, the most changes first, and their sum.

    It is true if no backends differ, and none breaks what decides; always without backends.

    ``others`` are tensors that were not checked. ``decided_by`` has by source the document's case,
    or the yardstick's cases of which any may allow an answer; ``asked`` has by source, then by
    backend, the case that was asked. ``versions`` are those of the backends,
    and ``notes`` say what the check passes over in this file.
    """

    path: str
    target: str
    total: Effects
    tensors: tuple[TensorChanges, ...]
    others: tuple[OtherTensor, ...]
    examples: tuple[ElementExample, ...]
    has_document: bool
    decided_by: Mapping[str, tuple[str, ...]]
    asked: Mapping[str, Mapping[str, str]]
    versions: Mapping[str, str]
    notes: tuple[str, ...] = ()

    @property
    def is_safe(self) -> bool:
        """Whether no backends differ, and none breaks what decides; true without backends."""
        return not self.total.differing and not any(self.total.breaking.values())

    def __bool__(self) -> bool:
        return self.is_safe

    def lines(self) -> Iterator[str]:
        """Yield the lines that ``castigate check`` prints."""
        yield from result_lines(self, shows_all=False)

    def to_arrow(self) -> pa.Table:
        """Return a table with a row per tensor: its name, dtype, shape, and counts of elements."""
        import pyarrow as pa

        counts = [each.name for each in fields(Effects) if each.name != "breaking"]
        return pa.Table.from_pylist(
            [
                {
                    "tensor": each.name,
                    "dtype": each.dtype,
                    "shape": shape_text(each.shape),
                    **{name: getattr(each.effects, name) for name in counts},
                }
                for each in self.tensors
            ]
        )


def result_lines(checked: CheckedCheckpoint, shows_all: bool) -> Iterator[str]:
    """Yield the lines of a result; without ``shows_all``, the table has ``SCREENFUL`` tensors."""
    yield _sentence(checked)
    yield ""
    yield from _table(checked, shows_all)
    yield ""
    elements: dict[tuple[str, tuple[int, ...]], list[ElementExample]] = {}
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
    """Return a share in percent; it is rounded to 0 % or 100 % only if it is exactly that."""
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
        rows.append(row(name, each.dtype, shape_text(each.shape), each.effects))
    if len(checked.tensors) > 1:
        rows.append(row("all", "", "", checked.total))
    yield from in_columns(rows, range(3, len(rows[0])))
    if len(shown) < len(checked.tensors):
        yield f"and {len(checked.tensors) - len(shown):,} more; --verbose shows all"


def shape_text(sizes: Sequence[int]) -> str:
    """Return a shape such as `64×64`."""
    return "×".join(map(str, sizes)) or "scalar"


def _not_allowed(backend: str) -> str:
    return f"{backend} not allowed"


def _example_lines(checked: CheckedCheckpoint, examples: Sequence[ElementExample]) -> Iterator[str]:
    """Yield the lines of an element, which is an example of one effect or more."""
    example = examples[0]
    titles = []
    for each in examples:
        effect, _, backend = each.effect.partition(":")
        titles.append(_not_allowed(backend) if backend else COLUMNS[effect])
    place = f"[{', '.join(map(str, example.index))}]"
    given = datum_words(example.dtype, example.pattern)
    yield f"{', '.join(titles)}: {plain_line(example.tensor, LONGEST_NAME)}{place} is {given}"
    allowed = [datum_words(checked.target, each) for each in example.allowed]
    yield f"  allowed {' or '.join(allowed)}"
    for answer in dict.fromkeys(example.answers.values()):
        names = [name for name, each in example.answers.items() if each == answer]
        yield f"  {', '.join(names)} {datum_words(checked.target, answer)}"


def _notes(checked: CheckedCheckpoint) -> Iterator[str]:
    """Yield lines that name the cases or the yardstick that decided, and the unchecked tensors."""
    if checked.has_document:
        cases = (case for each in checked.decided_by.values() for case in each)
        yield f"decided by {', '.join(cases)}"
    else:
        yield f"decided by the yardstick {YARDSTICK}: the exact value, rounded to {ROUNDING}"
        if checked.total.out_of_range:
            ends = ["the largest value", *_specials(format_named(checked.target))]
            yield (
                f"  out of range documents differ, so {_listed(ends)} are allowed; --document"
                " decides"
                if len(ends) > 1
                else f"  out of range there is only the largest value of {checked.target}"
            )
    yield from checked.notes
    if checked.others:
        kinds = Counter(plain_line(each.dtype, LONGEST_NAME) for each in checked.others)
        words = ", ".join(f"{count:,} of {dtype}" for dtype, count in kinds.most_common())
        shown = [plain_line(each.name, LONGEST_NAME) for each in checked.others[:MOST_NAMED]]
        more = ", …" if len(checked.others) > len(shown) else ""
        count = counted(len(checked.others), "tensor")
        yield f"not checked: {count} ({words}): {', '.join(shown)}{more}"


def _specials(target: Format) -> Iterator[str]:
    """Yield ``NaN`` and ``infinity``, as far as a format has them."""
    if target.nan_codes:
        yield "NaN"
    if target.entry.infinity:
        yield "infinity"


def _listed(words: Sequence[str]) -> str:
    return f"{', '.join(words[:-1])} and {words[-1]}"


def result_record(checked: CheckedCheckpoint) -> dict[str, Any]:
    """Return the object of ``--json``."""
    found = asdict(checked)
    found["others"] = [each._asdict() for each in checked.others]
    return {"is_safe": checked.is_safe, **found}
