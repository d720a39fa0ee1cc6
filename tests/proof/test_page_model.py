"""The reference and the documents agree with a model that was written from the pages alone.

``python -m tests.proof.test_page_model 1000000`` compares a million elements of each operation and
prints each kind of difference. The kinds that ``KNOWN`` lists are readings on which model and
documents differ on purpose; every other kind is an error of one of them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from random import Random
from time import perf_counter

import numpy as np

from oracles.reference import exact_rulings
from oracles.reference.exact_quantization import AllowedResult, dynamic_scale, dynamic_zero_point
from oracles.reference.quantization_kernels import NO_CODE, expect
from specs.branches import Ruling
from specs.cases import Case
from specs.outcomes import Nan
from specs.quantization_ruling import Formula, formula
from specs.ruling import ruling
from specs.selection import select
from tests.proof import page_model as model
from tests.proof.page_blocks_comparison import compare_blocks
from tests.proof.page_comparison import Kinds, Verdict, note, show
from tests.proof.page_inputs import Draw, specials
from tests.proof.page_model import Answer

QUANTIZE, DEQUANTIZE = "onnx-quantize-linear", "onnx-dequantize-linear"
DYNAMIC, CAST = "onnx-dynamic-quantize-linear", "webnn-cast"
WEBNN_QUANTIZE, WEBNN_DEQUANTIZE = "webnn-quantize-linear", "webnn-dequantize-linear"
SEED = 20
IN_THE_SUITE = 6_000


# Quantization


def model_of(case: Case) -> Callable[[int, int, int], Answer]:
    """The model's function of a case."""
    mode, version = case.mode, case.version
    if case.document == QUANTIZE:
        call = model.Quantize(
            int(version),
            case.source,
            case.target,
            mode["scale"],
            mode.get("saturate", "1") == "1",
            mode.get("precision"),
        )
        return lambda x, scale, zero: model.quantize(call, x, scale, zero)
    if case.document == DEQUANTIZE:
        plain = model.Dequantize(int(version), case.source, case.target, mode["scale"])
        return lambda x, scale, zero: model.dequantize(plain, x, scale, zero)
    of_webnn = {
        WEBNN_QUANTIZE: model.webnn_quantize,
        WEBNN_DEQUANTIZE: model.webnn_dequantize,
    }[case.document]
    return lambda x, scale, zero: of_webnn(case.source, case.target, x, scale, zero)


def verdicts(
    rules: Formula, elements: list[tuple[int, int, int]], *, has_zero: bool = True
) -> Iterator[Verdict]:
    """What the kernels of the reference allow for elements."""
    codes = rules.source if rules.operation == "dequantize" else rules.target
    formats = (rules.source, rules.scale, codes)
    x, scale, zero = (
        np.array([each[place] for each in elements], fmt.storage)
        for place, fmt in enumerate(formats)
    )
    found = expect(rules, x, scale, zero if has_zero else None)
    nans = model.nan_patterns(rules.target.name) if rules.target.nan_codes else frozenset()
    count = len(elements)
    is_open = np.broadcast_to(found.is_open, count).tolist()
    is_recommended = np.broadcast_to(found.is_recommended, count).tolist()
    strong, weaker = (
        [np.broadcast_to(each, count).tolist() for each in arrays]
        for arrays in (found.strong, found.weaker)
    )
    for at in range(count):
        if is_open[at]:
            yield Verdict(None, frozenset(), False)
            continue
        best = _patterns([each[at] for each in strong], nans)
        also = _patterns([each[at] for each in weaker], nans)
        yield Verdict(best | also, best, is_recommended[at])


def _patterns(codes: list[int], nans: frozenset[int]) -> frozenset[int]:
    found = frozenset(codes) - {NO_CODE}
    return (found - {-1}) | nans if -1 in found else found


def cases_of(document: str) -> list[Case]:
    """One case for each formula of a document: the form does not matter to an element."""
    known: dict[tuple[object, ...], Case] = {}
    for case in select([document]):
        rest = tuple(each for each in case.modes if each[0] not in ("form", "block"))
        known.setdefault((case.version, case.source, case.target, rest), case)
    return [*known.values()]


def compare(document: str, count: int, seed: int, kinds: Kinds) -> None:
    """Compare ``count`` elements, spread over the cases of a document."""
    cases = cases_of(document)
    each = max(2, -(-count // len(cases)))
    for number, case in enumerate(cases):
        rules = formula(case)
        draw = Draw(
            case.source,
            case.target,
            rules.scale.name,
            Random(f"{seed} {number}"),
            rules.operation == "dequantize",
        )
        answer = model_of(case)
        elements = [draw.element() for _ in range(each)]
        for element, verdict in zip(elements, verdicts(rules, elements), strict=True):
            x, scale, zero = element
            example = f"x={x:#x} scale={scale:#x} zero={zero:#x}"
            note(kinds, case.id, answer(*element), verdict, example)


# DynamicQuantizeLinear


def verdict_of(found: AllowedResult) -> Verdict:
    if found.is_open:
        return Verdict(None, frozenset(), False)
    best = frozenset(found.codes)
    return Verdict(best | frozenset(found.weaker), best, found.level == "recommended")


def dynamic_tensor(random: Random) -> list[int]:
    """Patterns of float32: moderate, wild, tiny, huge, all zero, or with a special one."""
    size = random.randrange(1, 6)
    pick = random.random()
    if pick < 0.04:
        return [random.choice([0, 1 << 31]) for _ in range(size)]
    if pick < 0.12:
        return [random.choice(specials("float32")) for _ in range(size)]
    if pick < 0.25:
        return [random.getrandbits(32) for _ in range(size)]
    if pick < 0.35:
        return [random.getrandbits(10) | random.choice([0, 1 << 31]) for _ in range(size)]
    if pick < 0.42:
        return [
            0x7F7FFFFF - random.getrandbits(12) | random.getrandbits(1) << 31 for _ in range(size)
        ]
    signs = random.choice([(0,), (1 << 31,), (0, 1 << 31)])
    base = random.randrange(100, 150)
    return [
        ((base + random.randrange(4)) << 23 | random.getrandbits(23)) | random.choice(signs)
        for _ in range(size)
    ]


def compare_dynamic(count: int, seed: int, kinds: Kinds) -> None:
    """Compare scales, zero points and codes of tensors, ``count`` of them in all."""
    (case,) = select([DYNAMIC])
    rules, random = formula(case), Random(seed)
    elements: list[tuple[int, int, int]] = []
    for _ in range(count // 4):
        xs = dynamic_tensor(random)
        shown = " ".join(f"{each:#x}" for each in xs)
        due = model.dynamic_scale(xs)
        found = dynamic_scale(rules, xs)
        note(kinds, f"{case.id} scale", due, verdict_of(found), shown)
        if due.admitted is None:
            continue
        for scale in sorted(due.admitted):
            if not 0 < scale < 0x7F800000:
                continue
            zeros = model.dynamic_zero(xs, scale)
            allowed = verdict_of(dynamic_zero_point(rules, xs, scale))
            note(kinds, f"{case.id} zero", zeros, allowed, f"{shown} scale={scale:#x}")
            zero = min(zeros.admitted or {0})
            elements += [(x, scale, zero) for x in xs[:1]]
    for element, verdict in zip(elements, verdicts(rules, elements), strict=True):
        x, scale, zero = element
        example = f"x={x:#x} scale={scale:#x} zero={zero:#x}"
        note(kinds, f"{case.id} y", model.dynamic_element(x, scale, zero), verdict, example)


# WebNN's cast


def compare_casts(count: int, seed: int, kinds: Kinds) -> None:
    """Compare ``count`` casts, spread over the cases of WebNN's cast."""
    cases = [case for case in select([CAST]) if case.example is None]
    for number, case in enumerate(cases):
        rules = ruling(case)
        best = [replace(each, outcome=each.strictest) for each in rules.branches]
        strict = replace(rules, branches=tuple(best))
        draw = Draw(case.source, case.target, "float32", Random(f"{seed} {number}"))
        for _ in range(-(-count // len(cases))):
            code = draw.beside()
            found = [_cast_patterns(each, code) for each in (rules, strict)]
            level = exact_rulings.allow(rules, code).branch.level
            verdict = Verdict(found[0], found[1] or frozenset(), level == "recommended")
            due = model.webnn_cast(case.source, case.target, code)
            note(kinds, case.id, due, verdict, f"{code:#x}")


def _cast_patterns(rules: Ruling, code: int) -> frozenset[int] | None:
    allowed = exact_rulings.allow(rules, code)
    if isinstance(allowed.branch.outcome, Nan):
        return model.nan_patterns(rules.target.name)
    return frozenset(allowed.codes) or None


ONE_DOCUMENT = {
    QUANTIZE: 1,
    DEQUANTIZE: 1,
    WEBNN_QUANTIZE: 4,
    WEBNN_DEQUANTIZE: 4,
}
"""Documents that are compared element by element, and by what their count is divided."""


def comparisons(count: int) -> Iterator[tuple[str, Callable[[Kinds], None]]]:
    """The comparisons by name, each of about ``count`` elements or fewer."""
    for document, part in ONE_DOCUMENT.items():
        yield document, partial(compare, document, count // part, SEED)
    yield CAST, partial(compare_casts, count // 4, SEED)
    yield DYNAMIC, partial(compare_dynamic, count, SEED)
    yield "blocks", partial(compare_blocks, count, SEED)


def main(count: int) -> None:
    """Compare ``count`` elements of each operation, and print the differences by kind."""
    for name, comparison in comparisons(count):
        began, kinds = perf_counter(), Kinds()
        comparison(kinds)
        show(name, kinds, perf_counter() - began)


if __name__ == "__main__":
    main(int(sys.argv[1]))
