"""Lists the cases of a document of quantization, and resolves each to its formula.

A case is a pair of dtypes with modes: the dtype of the scales, how they lie along the tensor, and,
if the document has them, the attributes `saturate` and `precision`. Values are not part of it. A
formula has the outcome of each situation at each step. Every formula is proved when it is made: at
each step exactly one rule takes each situation that can arise there.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import product

from specs.branches import Meaning
from specs.cases import Case
from specs.editions import Edition, edition
from specs.formats import Format, format_named, formats
from specs.loader import Document, document_named
from specs.model.document import DocumentEntry, RuleEntry
from specs.model.step_entry import (
    OPEN,
    SITUATIONS,
    STEPS,
    CombinationEntry,
    FormulaStep,
    Situation,
    StepWord,
)
from specs.model.vocabulary import (
    BLOCK,
    BLOCK_SIZE,
    FORM,
    PRECISION,
    SATURATE,
    SCALE,
    Atom,
    Level,
    Sign,
)
from specs.operations import ZERO, TensorDtypes, X, Y
from specs.outcomes import Exactly, Nan
from specs.ruling import CaseRule, ruling

Pair = tuple[str, str]
Modes = tuple[tuple[str, str], ...]

FORMULAS_KEPT = 4096
CAST = "onnx-cast"
"""The document whose tables say what the word `cast` means, in the version of the same number."""


def cases(version: Edition) -> Iterator[Case]:
    """Yield a version's cases, each once: listed pairs with the modes of ``quantization.cases``."""
    entry, document = version.document.entry, version.document.name
    assert entry.quantization is not None
    order = list(entry.versions)
    found: dict[tuple[Pair, Modes], None] = {}
    for each in entry.quantization.cases:
        first = order.index(each.since) if each.since is not None else 0
        last = order.index(each.until) if each.until is not None else len(order)
        if not first <= order.index(version.version) <= last:
            continue
        sources, targets = (_dtypes(entry, words) for words in (each.from_, each.to))
        for source in sources:
            for target in targets:
                if (source, target) in version.listed:
                    floats = source if entry.operation == "quantize" else target
                    for modes in _modes(each, floats):
                        found[(source, target), modes] = None
    place = {name: index for index, name in enumerate(formats())}
    for pair, modes in sorted(found, key=lambda each: (place[each[0][0]], place[each[0][1]])):
        yield Case(document, version.version, *pair, modes)


def _dtypes(entry: DocumentEntry, words: Sequence[str] | None) -> list[str]:
    if words is None:
        return list(formats())
    return [dtype for word in words for dtype in entry.groups.get(word, [word])]


def _modes(combination: CombinationEntry, floats: str) -> Iterator[Modes]:
    scales = [floats if word == "same" else word for word in combination.scale]
    axes = (scales, combination.form, combination.saturate, combination.precision)
    for scale, form, saturate, precision in product(*(axis or [""] for axis in axes)):
        if precision and precision == scale:
            continue  # The attribute would change nothing.
        block = str(BLOCK_SIZE) if form == "block" else ""
        modes = (
            (SCALE, scale),
            (FORM, form),
            (BLOCK, block),
            (SATURATE, saturate),
            (PRECISION, "" if precision == "scale" else precision),
        )
        yield tuple((name, value) for name, value in modes if value)


@dataclass(frozen=True)
class StepOutcome:
    """The words by which a step may treat values in one situation; some may be recommended."""

    words: tuple[StepWord, ...]
    recommended: tuple[StepWord, ...]
    level: Level
    rule: str = field(compare=False)
    clause: str = field(compare=False)

    @property
    def is_open(self) -> bool:
        """Whether any result is allowed."""
        return OPEN in self.words

    @property
    def best(self) -> StepWord:
        """The word by which the reference answers: the first recommended one, or else the first."""
        return (*self.recommended, *self.words)[0]

    def is_weak(self, word: StepWord) -> bool:
        """Whether the outcome has recommended words, and this one is not among them."""
        return bool(self.recommended) and word not in self.recommended


@dataclass(frozen=True)
class CastOutcome:
    """What Cast allows for a value that the target does not have, and what it recommends.

    ``strictest`` equals ``outcome`` if Cast recommends nothing.
    """

    outcome: Exactly | Nan
    strictest: Exactly | Nan


@dataclass(frozen=True)
class Formula:
    """A case's formula: its formats, and the outcomes of each step by situation.

    ``precision`` is the format in which the division or product is rounded. If the word `cast`
    occurs in ``steps``, ``casts`` has the answers of Cast to infinities, NaNs and values out of
    range, by situation and by whether the value is negative.
    """

    operation: str
    source: Format
    target: Format
    scale: Format
    precision: Format
    steps: tuple[tuple[FormulaStep, tuple[tuple[Situation, StepOutcome], ...]], ...]
    casts: tuple[tuple[tuple[Situation, bool], CastOutcome], ...] = ()

    @cached_property
    def outcomes(self) -> dict[FormulaStep, dict[Situation, StepOutcome]]:
        """The outcomes of each step by situation."""
        return {step: dict(each) for step, each in self.steps}

    def outcome(self, step: FormulaStep, situation: Situation) -> StepOutcome:
        """Return the outcome of a situation at a step; raise KeyError if it cannot arise there."""
        return self.outcomes[step][situation]

    def cast_of(self, situation: Situation, *, is_negative: bool) -> CastOutcome:
        """Return what Cast makes of a value that the target does not have; a NaN has a sign too.

        Raise KeyError if the formula does not use Cast.
        """
        return dict(self.casts)[situation, is_negative]

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of all rules that apply."""
        names = [outcome.rule for _, each in self.steps for _, outcome in each]
        return tuple(dict.fromkeys(names))

    @cached_property
    def meaning(self) -> Hashable:
        """A key without rule names: formulas with equal keys give the same answers."""
        formats = (self.source, self.target, self.scale, self.precision)
        return Meaning((self.operation, *formats, self.steps, self.casts))

    def __hash__(self) -> int:
        return hash(self.meaning)


@lru_cache(FORMULAS_KEPT)
def formula(case: Case) -> Formula:
    """Return the formula of a case of a shipped document."""
    return rule_quantization(document_named(case.document), case)


def rule_quantization(document: Document, case: Case) -> Formula:
    """Return the formula of a case; raise DocumentError if its rules leave a gap or overlap."""
    version = edition(document, case.version)
    found = _formats_only(document, case)
    steps = tuple(
        (step, tuple(_outcomes(version, case, found, step)))
        for step in STEPS[document.entry.operation]
    )
    uses_cast = any("cast" in outcome.words for _, each in steps for _, outcome in each)
    casts = tuple(_casts(case)) if uses_cast else ()
    return replace(found, steps=steps, casts=casts)


def _formats_only(document: Document, case: Case) -> Formula:
    operation = document.entry.operation
    source, target = format_named(case.source), format_named(case.target)
    floats = target if operation == "dequantize" else source
    scale = format_named(case.mode.get(SCALE, floats.name))
    precision = format_named(case.mode[PRECISION]) if PRECISION in case.mode else scale
    if operation == "dequantize":
        precision = target
    return Formula(operation, source, target, scale, precision, ())


def _outcomes(
    version: Edition, case: Case, found: Formula, step: FormulaStep
) -> Iterator[tuple[Situation, StepOutcome]]:
    """Yield each situation that can arise at a step, with the outcome that one rule gives it.

    Raise DocumentError if no rule takes a situation, or several do.
    """
    document = version.document
    takers: dict[Situation, list[tuple[str, RuleEntry]]] = {}
    for name in version.rules_between(case.source, case.target):
        rule = document.entry.rules[name]
        if rule.step == step and rule.gives and version.matches(rule.when, case):
            for situation in rule.gives:
                takers.setdefault(situation, []).append((name, rule))
    for situation in SITUATIONS[step]:
        if not _arises(found, step, situation):
            continue
        match takers.get(situation, []):
            case []:
                message = f"gap: {case.id}: no rule says what becomes of `{situation}` at `{step}`"
                raise document.source.error(("rules",), message)
            case [(name, rule)]:
                yield situation, _outcome(name, rule, situation)
            case [(first, _), (name, _), *_]:
                message = f"overlap: {case.id}: {first} and {name} both take `{situation}`"
                raise document.source.error(("rules", name), f"{message} at `{step}`")


def _outcome(name: str, rule: RuleEntry, situation: Situation) -> StepOutcome:
    assert rule.gives is not None
    entry = rule.gives[situation]
    level = "unspecified" if OPEN in entry.words else entry.level or rule.level
    clause = entry.clause or rule.clause
    return StepOutcome(entry.words, tuple(entry.and_recommended), level, name, clause)


def _arises(found: Formula, step: FormulaStep, situation: Situation) -> bool:
    """Whether a value of the formula's dtypes can be in a situation at a step."""
    match step, situation:
        case "scale", _:
            return _has(found.scale, situation)
        case "input" | "quotient" | "range", "infinite" | "nan":
            return _has(found.source, situation)
        case "saturation", "infinite":
            return not found.target.is_integral or _has(found.source, situation)
        case "saturation", "nan":
            return not found.target.is_integral
    return True


def _has(fmt: Format, situation: Situation) -> bool:
    match situation:
        case "negative":
            return fmt.is_signed
        case "zero":
            return fmt.has_zero
        case "infinite":
            return fmt.entry.infinity
        case "nan":
            return bool(fmt.nan_codes)
    return True


def _casts(case: Case) -> Iterator[tuple[tuple[Situation, bool], CastOutcome]]:
    """Yield what Cast makes of the values that a float target lacks, each after its key.

    A key is a situation and whether the value is negative.
    """
    modes = tuple((name, value) for name, value in case.modes if name == SATURATE)
    rules = ruling(Case(CAST, case.version, "float32", case.target, modes))
    signs: tuple[Sign, Sign] = ("+", "-")
    for is_negative, sign in enumerate(signs):
        atoms: dict[Situation, Atom] = {
            "out-of-range": Atom("finite", sign, "overflow"),
            "infinite": Atom("infinity", sign),
            "nan": Atom("nan", sign),
        }
        for situation, atom in atoms.items():
            branch = rules.branches[rules.branch_of[atom]]
            outcome, strictest = branch.outcome, branch.strictest
            assert isinstance(outcome, Exactly | Nan), f"{case.id}: {outcome}"
            assert isinstance(strictest, Exactly | Nan), f"{case.id}: {strictest}"
            yield (situation, bool(is_negative)), CastOutcome(outcome, strictest)


def rules(document: Document, case: Case) -> Iterator[CaseRule]:
    """Yield the rules of a case's formula, each with the situations of a step that it is about."""
    for step, outcomes in rule_quantization(document, case).steps:
        situations: dict[tuple[str, str, str, bool], list[str]] = {}
        for situation, each in outcomes:
            key = each.rule, each.level, each.clause, each.is_open
            situations.setdefault(key, []).append(situation)
        for (rule, level, clause, is_open), names in situations.items():
            yield CaseRule(rule, level, clause, f"{step}: {', '.join(names)}", is_open)


def dtypes(case: Case) -> TensorDtypes:
    """Return the names and dtypes of the tensors that a case takes and returns.

    A zero point has the dtype of the codes. It is listed also where a document lets it be left out.
    """
    found = _formats_only(document_named(case.document), case)
    scale = {SCALE: found.scale.name}
    match found.operation:
        case "quantize":
            return TensorDtypes({X: case.source} | scale | {ZERO: case.target}, {Y: case.target})
        case "dequantize":
            return TensorDtypes({X: case.source} | scale | {ZERO: case.source}, {Y: case.target})
    return TensorDtypes({X: case.source}, {Y: case.target} | scale | {ZERO: case.target})
