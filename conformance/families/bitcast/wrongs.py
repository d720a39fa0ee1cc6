"""Mistakes that a backend may make when it bitcasts: a table with a row for each mechanism.

A row computes the answer to a whole tensor. The judge of bitcasts tries the rows, because it has
the whole answers; a run stores only the first wrong element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from conformance.families.bitcast.bits import by_integer
from conformance.families.bitcast.ruling import BitcastRuling
from conformance.families.bitcast.tensors import MOST_RANKS
from reports.behaviors.regions import behaviors_between, evaluate
from reports.findings.wrong import Patterns, flushed, is_same
from reports.grading.allowed_answers import is_nan
from reports.problems import NotRefused, Problem, WrongElement, WrongShape
from specs.behaviors import Behavior, ConstantAnswer
from specs.cases import Case, Shape
from specs.formats import Format, format_named
from specs.model.document import STORAGE_OFFSET

BYTE = 8
PatternChange = Callable[[Format, Patterns], Patterns | None]
"""Takes a format and patterns of it, and returns the changed patterns; None if the change does not
concern the format."""
AnswersTo = Callable[[BitcastRuling, Patterns], Patterns | None]
"""Takes the ruling and a tensor, and returns the wrong answer; None if the mechanism does not
apply to the pair."""


class Wrong(NamedTuple):
    """A mechanism of wrong bitcasts: its name, the sentence of a finding, and its answers.

    ``or_answers``, unless None, are the answers of a variant that treats an unfilled last byte
    otherwise.
    """

    name: str
    says: str
    answers: AnswersTo
    or_answers: AnswersTo | None = None


def _of_inputs(change: PatternChange, ruling: BitcastRuling, bits: Patterns) -> Patterns | None:
    changed = change(ruling.source, bits)
    return None if changed is None else by_integer(ruling, changed)


def _of_answers(change: PatternChange, ruling: BitcastRuling, bits: Patterns) -> Patterns | None:
    return change(ruling.target, by_integer(ruling, bits))


def _in_groups(ruling: BitcastRuling, bits: Patterns) -> Patterns | None:
    """Return the bitcast with the narrow elements of each wide one in reverse order.

    Return None if the widths are equal, or neither divides the other.
    """
    widths = ruling.widths.source, ruling.widths.target
    narrow, wide = sorted(widths)
    if narrow == wide or wide % narrow:
        return None
    reverse = partial(_reversed_groups, wide // narrow)
    if narrow == ruling.widths.source:
        return by_integer(ruling, reverse(bits))
    return reverse(by_integer(ruling, bits))


def _reversed_groups(size: int, patterns: Patterns, *, is_filled: bool = False) -> Patterns:
    """Return ``patterns`` with each group of ``size`` elements reversed, in the same shape.

    An incomplete last group stays as it is. If ``is_filled``, zeros fill it up before it is
    reversed, and what no longer fits the shape is cut off.
    """
    flat = patterns.reshape(-1)
    missing = -flat.size % size if is_filled else 0
    filled = np.concatenate([flat, np.zeros(missing, flat.dtype)])
    whole = filled.size - filled.size % size
    filled[:whole] = filled[:whole].reshape(-1, size)[:, ::-1].reshape(-1)
    return filled[: flat.size].reshape(patterns.shape)


def _in_bytes(is_filled: bool, ruling: BitcastRuling, bits: Patterns) -> Patterns | None:
    """Return the bitcast with the narrow elements that share a byte in reverse order.

    Return None if the narrow dtype has whole bytes, or its width does not divide a byte. If
    ``is_filled``, zeros fill the last byte first.
    """
    narrow = min(ruling.widths.source, ruling.widths.target)
    if narrow >= BYTE or BYTE % narrow:
        return None
    reverse = partial(_reversed_groups, BYTE // narrow, is_filled=is_filled)
    if ruling.widths.source < ruling.widths.target:
        return by_integer(ruling, reverse(bits))
    return reverse(by_integer(ruling, bits))


def _without_unfilled(ruling: BitcastRuling, bits: Patterns) -> Patterns | None:
    """Return the bitcast with zeros for those last elements that do not fill a byte.

    Return None if target elements have whole bytes, or their width does not divide a byte.
    """
    narrow, right = ruling.widths.target, by_integer(ruling, bits)
    if narrow >= BYTE or BYTE % narrow:
        return None
    flat = right.reshape(-1).copy()
    flat[flat.size - flat.size % (BYTE // narrow) :] = 0
    return flat.reshape(right.shape)


def _in_memory_order(ruling: BitcastRuling, bits: Patterns) -> Patterns:
    """Return the bitcast of the elements as they lie in memory, without the gaps between them.

    If elements are repeated, so that they lie there once, the bitcast is right.
    """
    if 0 in bits.strides:
        return by_integer(ruling, bits)
    return by_integer(ruling, bits.ravel("K").reshape(bits.shape))


def _with_axes_exchanged(rank: int, ruling: BitcastRuling, bits: Patterns) -> Patterns:
    """Return the bitcast, its last two axes exchanged in the same shape if it has ``rank`` axes."""
    right = by_integer(ruling, bits)
    return right if right.ndim < rank else right.swapaxes(-1, -2).reshape(right.shape)


def _with_bytes_reversed(form: Format, patterns: Patterns) -> Patterns | None:
    if form.bits <= BYTE or patterns.dtype.kind == "V":
        return None
    return patterns.byteswap()


def _in_floats(
    change: Callable[[Format, Patterns], Patterns], form: Format, patterns: Patterns
) -> Patterns | None:
    """Apply ``change`` to floats, or to the parts of complex numbers; return None for others."""
    part = format_named(form.entry.part) if form.kind == "complex" else form
    if part.kind != "float":
        return None
    flat = np.ascontiguousarray(patterns).reshape(-1).view(part.storage)
    return change(part, flat).astype(part.storage).view(patterns.dtype).reshape(patterns.shape)


def _quieted(form: Format, patterns: Patterns) -> Patterns:
    if form.entry.nan != "ieee" or not form.entry.mantissa:
        return patterns
    quiet = patterns.dtype.type(1 << (form.entry.mantissa - 1))
    return np.where(is_nan(form, patterns), patterns | quiet, patterns)


def _with_one_nan(form: Format, patterns: Patterns) -> Patterns:
    if form.entry.nan != "ieee" or not form.entry.mantissa:
        return patterns
    one = form.infinity_code | 1 << (form.entry.mantissa - 1)
    return np.where(is_nan(form, patterns), patterns.dtype.type(one), patterns)


def _flushed(form: Format, patterns: Patterns) -> Patterns:
    return flushed(form, patterns).codes if form.entry.zero == "signed" else patterns


def _without_minus_zero(form: Format, patterns: Patterns) -> Patterns:
    if form.entry.zero != "signed":
        return patterns
    return np.where(patterns == form.sign_bit, patterns.dtype.type(0), patterns)


CHANGES_OF_FLOATS: Mapping[str, tuple[str, Callable[[Format, Patterns], Patterns]]] = {
    "quiets-nans": ("bitcasts make signaling NaNs of the {} quiet", _quieted),
    "replaces-nans": ("bitcasts replace all NaNs of the {} by one", _with_one_nan),
    "flushes-bits": ("bitcasts flush subnormal numbers of the {} to zero", _flushed),
    "loses-minus-zero": ("bitcasts turn -0 of the {} into 0", _without_minus_zero),
}
"""Changes that float arithmetic makes to bits that should only be moved: by name, a sentence in
which braces stand for source or target, and the function."""
WRONGS = (
    Wrong(
        "reverses-elements-in-bytes",
        "bitcasts put elements of less than 8 bits that share a byte in reverse order",
        partial(_in_bytes, True),
        partial(_in_bytes, False),
    ),
    Wrong(
        "loses-unfilled-bytes",
        "bitcasts give zeros for the last elements of less than 8 bits if these fill no byte",
        _without_unfilled,
    ),
    Wrong(
        "reverses-elements",
        "bitcasts between widths put the elements that make up a wider one in reverse order",
        _in_groups,
    ),
    Wrong(
        "reversed-bytes-of-answers",
        "gives its answers with their bytes in reverse order",
        partial(_of_answers, _with_bytes_reversed),
    ),
    Wrong(
        "reversed-bytes-of-inputs",
        "reads its inputs with their bytes in reverse order",
        partial(_of_inputs, _with_bytes_reversed),
    ),
    *(
        Wrong(f"{name}-of-{place}", says.format(place), partial(where, partial(_in_floats, change)))
        for name, (says, change) in CHANGES_OF_FLOATS.items()
        for place, where in (("source", _of_inputs), ("target", _of_answers))
    ),
    Wrong(
        "reads-memory-order",
        "bitcasts read elements in the order in which they lie in memory",
        _in_memory_order,
    ),
    *(
        Wrong(
            f"exchanges-axes-from-rank-{rank}",
            f"bitcasts exchange the last two dimensions of tensors of {rank} or more dimensions",
            partial(_with_axes_exchanged, rank),
        )
        for rank in range(MOST_RANKS, 1, -1)
    ),
)
"""The mechanisms that are tried; of two that explain equally many failures a finding names the
first."""
CONVERTS = "converts-values"
"""Names the finding of bitcasts that answer as a behavior of casts does; constants do not count."""


class ShapeRule(NamedTuple):
    """A rule that shapes of answers may follow: its sentence, and whether it holds for two shapes.

    These are the shape of the tensor and that of its answer.
    """

    says: str
    holds: Callable[[Shape, Shape], bool]


SHAPE_RULES: Mapping[str, ShapeRule] = {
    "scales-the-last-axis": ShapeRule(
        "bitcasts between widths make the last axis longer or shorter",
        lambda given, answer: len(given) == len(answer) and given[:-1] == answer[:-1],
    ),
    "adds-or-drops-an-axis": ShapeRule(
        "bitcasts between widths add an axis or drop the last",
        lambda given, answer: given == answer[:-1] or answer == given[:-1],
    ),
    "keeps-the-shape": ShapeRule(
        "bitcasts between widths keep the shape", lambda given, answer: given == answer
    ),
}
"""The rules that shapes may follow, by the names of their findings."""


def followed_rules(given: Shape, answer: Shape, wanted: Shape | None = None) -> tuple[str, ...]:
    """Return the names of the shape rules that the shapes of a tensor and its answer follow.

    A rule that the ``wanted`` shape follows too is left out; ``wanted`` is None if the document
    wants no shape.
    """
    return tuple(
        name
        for name, rule in SHAPE_RULES.items()
        if rule.holds(given, answer) and (wanted is None or not rule.holds(given, wanted))
    )


IGNORES_OFFSETS = "ignores-storage-offsets"
OTHERWISE = {
    "changes-bits": "bitcasts give other bits",
    "other-shape": "bitcasts give another shape",
}
"""The sentences of findings that no mechanism explains, by name."""
SAYS: Mapping[str, str] = {
    **{each.name: each.says for each in WRONGS},
    **{name: rule.says for name, rule in SHAPE_RULES.items()},
    CONVERTS: "bitcasts convert values as casts do, and do not keep the bits",
    IGNORES_OFFSETS: "bitcasts accept a storage offset at which no wider element may begin",
    **OTHERWISE,
}


def says(name: str) -> str:
    """Return the sentence of a finding by its name."""
    return SAYS[name]


def followed(case: Case, problem: Problem) -> Sequence[str]:
    """Return the names of the mechanisms, or of the shape rules, that explain a problem.

    A wrong element without a mechanism has ``changes-bits``. Shape rules explain a wrong shape or a
    missing refusal between dtypes of different widths, unless the tensor's storage offset demands
    the refusal. Other problems have no names.
    """
    is_between_widths = format_named(case.source).bits != format_named(case.target).bits
    match problem:
        case WrongElement(followed=names):
            return names or ("changes-bits",)
        case WrongShape(given=given, got=got, wanted=wanted):
            return followed_rules(given, got, wanted) if is_between_widths else ()
        case NotRefused(rule=rule) if rule == STORAGE_OFFSET:
            return (IGNORES_OFFSETS,)
        case NotRefused(given=given, got=got) if given is not None and got is not None:
            return followed_rules(given, got) if is_between_widths else ()
    return ()


def followed_mechanisms(
    answered: Iterable[tuple[BitcastRuling, Patterns, Patterns]],
) -> tuple[str, ...]:
    """Return the names of the mechanisms that give every answer.

    ``answered`` yields triples of a ruling, a tensor, and the answer to it, at least one.
    """
    every = list(answered)
    names = tuple(row.name for row in WRONGS if all(_gives(row, *each) for each in every))
    return names if names or not _are_converted(every) else (CONVERTS,)


def _gives(row: Wrong, ruling: BitcastRuling, bits: Patterns, answer: Patterns) -> bool:
    ways = (way for way in (row.answers, row.or_answers) if way is not None)
    return any(
        given is not None and given.shape == answer.shape and bool((given == answer).all())
        for given in (way(ruling, bits) for way in ways)
    )


def _are_converted(every: Sequence[tuple[BitcastRuling, Patterns, Patterns]]) -> bool:
    """Whether one behavior of casts between numbers gives the answers to all tensors of a pair."""
    source, target = every[0][0].source, every[0][0].target
    if not (source.is_numeric and target.is_numeric):
        return False
    return any(
        all(_converts(behavior, *each) for each in every)
        for behavior in behaviors_between(source, target)
        if not any(isinstance(step, ConstantAnswer) for step in behavior.steps)
    )


def _converts(behavior: Behavior, ruling: BitcastRuling, bits: Patterns, answer: Patterns) -> bool:
    if bits.shape != answer.shape:
        return False
    made, defined = evaluate(behavior, ruling.source, ruling.target, bits.reshape(-1))
    return bool((defined & is_same(ruling.target, made, answer.reshape(-1))).all())
