"""Checks a checkpoint: ``check_checkpoint`` is what the command and programs call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from conformance.extras.checkpoints.cast_check import (
    BREAKING,
    DIFFERING,
    EFFECTS,
    CastCheck,
    EffectTally,
    ElementSample,
)
from conformance.extras.checkpoints.element_list import ElementList, allowed_words
from conformance.extras.checkpoints.opening import open_checkpoint
from conformance.extras.checkpoints.pattern_counts import fastest_count
from conformance.extras.checkpoints.results import (
    ROUNDING,
    VERSION,
    YARDSTICK,
    CheckedCheckpoint,
    Effects,
    ElementExample,
    TensorChanges,
)
from conformance.extras.checkpoints.stored_tensors import OtherTensor, StoredContents, StoredTensor
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT
from oracles.backend.loading import launch_configs, load_all
from oracles.registry import Backend
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format, dtype_spelled, dtypes_spelled, format_named
from specs.loader import document_and_version, document_word
from specs.ruling import ruling
from specs.selection import cases_of_pair

if TYPE_CHECKING:
    from conformance.extras.checkpoints.backend_answers import AskedBackends

ByteProgress = Callable[[int], Callable[[int], None]]
"""Gets the bytes to read; returns a function that is called with the bytes of each step."""


def no_progress(total: int) -> Callable[[int], None]:
    """Return a callback that shows nothing; the function is a ``ByteProgress``."""
    return lambda more: None


def check_checkpoint(
    path: str | Path,
    target: str,
    *,
    source: str | None = None,
    document: str | None = None,
    backends: Sequence[str] = (),
    pythons: Sequence[str] = (),
    timeout: float = DEFAULT_TIMEOUT,
    progress: ByteProgress = no_progress,
    listing: ElementList | None = None,
) -> CheckedCheckpoint:
    """Say what a cast to ``target`` does to each tensor of a checkpoint, and what backends answer.

    The file is safetensors (one file, an index, or a folder), GGUF, npz, npy or ONNX. Both dtypes
    may be spelled as any framework does. With ``source``, only tensors of this dtype are checked,
    otherwise all floats but those of the target. ``document`` is ``NAME`` or ``NAME:VERSION``;
    without it, the yardstick ``small-floats`` decides: nearest even, and out of range the largest
    value, infinity or NaN. ``pythons`` has ``BACKEND=PATH`` for backends of another Python, and
    ``timeout`` limits one answer in seconds. ``listing`` writes elements while backends are loaded.
    Raise CastigateError if the file or an option is
    invalid, if no tensor is left, if the document lacks a cast, or if a backend fails.
    """
    goal = _float_named("--to", target)
    origin = _float_named("--from", source) if source is not None else None
    if origin == goal:
        raise CastigateError(f"--from and --to are both {goal.name}; name two dtypes")
    contents = open_checkpoint(Path(path))
    chosen, others = _chosen(path, contents, goal, origin)
    cases = {
        name: _cases(document, name, goal.name)
        for name in dict.fromkeys(each.dtype for each in chosen)
    }
    count = fastest_count(sum(each.elements for each in chosen))
    advance = progress(sum(each.bytes for each in chosen))
    with ExitStack() as stack:
        loaded = load_all(stack, launch_configs(backends, pythons, timeout))
        names = [each.name for each in loaded]
        asked = {name: _asked(loaded, name, goal.name) for name in cases} if loaded else {}
        checks = {
            name: CastCheck(
                [*map(ruling, each)], asked[name].answers if name in asked else None, count
            )
            for name, each in cases.items()
        }
        tallies = [(each, checks[each.dtype].tally(each, advance)) for each in chosen]
        examples = tuple(_examples(checks, tallies, names))
        if listing is not None:
            listing.write_rows(checks, chosen, names)
    rows = [
        TensorChanges(each.name, each.dtype, each.shape, _effects(each, tally, names))
        for each, tally in tallies
    ]
    total = Effects(breaking=dict.fromkeys(names, 0))
    for row in rows:
        total = total.plus(row.effects)
    return CheckedCheckpoint(
        str(path),
        goal.name,
        total,
        tuple(sorted(rows, key=lambda row: (-row.effects.changed, -row.effects.elements))),
        others,
        examples,
        document is not None,
        {name: tuple(case.id for case in each) for name, each in cases.items()},
        {
            name: {party.name: party.case.id for party in each.parties}
            for name, each in asked.items()
        },
        {each.name: each.version for each in loaded},
        contents.notes,
    )


def _float_named(option: str, word: str) -> Format:
    """Return the float format that an option names; raise CastigateError if it names none."""
    found = format_named(dtype_spelled(word))
    if found.is_integral and option == "--to":
        raise CastigateError(
            f"--to `{word}` is no float; weights become integers by scales, by a quantization:"
            " castigate judge FILE.npz --case CASE judges it, and castigate.check a function of"
            " yours (docs/quantization.md)"
        )
    if found.kind != "float":
        raise CastigateError(f"{option} `{word}` is no float; name one such as float8e4m3fn")
    return found


def _chosen(
    path: str | Path, contents: StoredContents, target: Format, source: Format | None
) -> tuple[list[StoredTensor], tuple[OtherTensor, ...]]:
    """Return the tensors to check, and those that are left out.

    Raise CastigateError if there are none to check.
    """
    wanted = [
        each
        for each in contents.floats
        if each.dtype != target.name and source in (None, format_named(each.dtype))
    ]
    if not wanted:
        counts = Counter(each.dtype for each in contents.floats)
        counts += Counter(_dtype_word(each.dtype) for each in contents.others)
        has = ", ".join(f"{count:,} of {dtype}" for dtype, count in counts.most_common())
        what = f"of {source.name}" if source is not None else f"of floats to cast to {target.name}"
        hint = "name another --from" if source is not None else "give another file"
        raise CastigateError(f"{path} has no tensor {what}; it has {has or 'none at all'}; {hint}")
    names = {id(each) for each in wanted}
    left = [(each.name, each.dtype) for each in contents.floats if id(each) not in names]
    others = (*contents.others, *left)
    return wanted, tuple(OtherTensor(name, _dtype_word(dtype)) for name, dtype in others)


def _dtype_word(dtype: str) -> str:
    """Return Castigate's name of a dtype as a file names it, such as I64; or the file's name."""
    known = dtypes_spelled(dtype)
    return known[0] if len(known) == 1 else dtype


def _cases(document: str | None, source: str, target: str) -> tuple[Case, ...]:
    """Return the cases that decide a cast: a document's, or those of the yardstick.

    Raise CastigateError for an unknown document, and if it lists no such cast.
    """
    if document is None:
        return tuple(
            case
            for case in cases_of_pair(YARDSTICK, VERSION, source, target)
            if case.mode.get("round", ROUNDING) == ROUNDING
            and _has_result(format_named(target), case.mode.get("overflow", ""))
        )
    from conformance.pair_answers import case_between  # It needs all judges, see below.

    named, version = document_and_version(document_word(document))
    version = version or [*named.entry.versions][-1]
    found = case_between(named.name, version, source, target)
    if found is None:
        raise CastigateError(
            f"{named.name}:{version} lists no cast from {source} to {target} that answers every"
            " input; name another --document, or choose tensors by --from"
        )
    return (found,)


def _has_result(target: Format, overflow: str) -> bool:
    """Return whether a format has what the yardstick's mode ``overflow`` gives out of range."""
    match overflow:
        case "nan":
            return bool(target.nan_codes)
        case "inf":
            return target.entry.infinity
    return True


def _asked(backends: Sequence[Backend], source: str, target: str) -> AskedBackends:
    """Return backends with their cases of a pair; raise CastigateError if one answers none."""
    # It needs all judges, which take longer to import than a small checkpoint to read.
    from conformance.extras.checkpoints.backend_answers import asked_backends

    return asked_backends(backends, source, target)


def _effects(tensor: StoredTensor, tally: EffectTally, backends: Sequence[str]) -> Effects:
    counts = {name: tally.counts.get(bit, 0) for bit, name in enumerate(EFFECTS)}
    breaking = {name: tally.counts.get(BREAKING + place, 0) for place, name in enumerate(backends)}
    differing = tally.counts.get(DIFFERING, 0)
    return Effects(tensor.elements, **counts, differing=differing, breaking=breaking)


def _examples(
    checks: Mapping[str, CastCheck],
    tallies: Sequence[tuple[StoredTensor, EffectTally]],
    backends: Sequence[str],
) -> Iterator[ElementExample]:
    """Yield an example of each effect that occurs: in the tensor that has it most often."""
    names = [*EFFECTS, "differing", *(f"breaking:{name}" for name in backends)]
    chosen: dict[int, tuple[StoredTensor, ElementSample]] = {}
    for tensor, tally in tallies:
        for bit, sample in tally.samples.items():
            if bit not in chosen or sample.count > chosen[bit][1].count:
                chosen[bit] = tensor, sample
    wanted: dict[int, list[int]] = {}
    for tensor, sample in chosen.values():
        if sample.position is None:
            wanted.setdefault(id(tensor), []).append(sample.key)
    places = {
        id(tensor): checks[tensor.dtype].located(tensor, wanted[id(tensor)])
        for tensor, _ in tallies
        if id(tensor) in wanted
    }
    for bit, (tensor, sample) in sorted(chosen.items(), key=lambda item: item[0]):
        check = checks[tensor.dtype]
        position, pattern, answers = sample.position, sample.pattern, sample.answers
        if position is None:
            position, pattern = places[id(tensor)][sample.key]
            answers = check.answers(pattern)
        yield ElementExample(
            names[bit],
            tensor.name,
            tensor.dtype,
            tensor.place(position),
            check.source.hexadecimal(pattern),
            allowed_words(check.rulings, pattern),
            dict(zip(backends, map(check.target.hexadecimal, answers), strict=True)),
        )
