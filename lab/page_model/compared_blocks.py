"""Compares the reference of blocks with a model that was written from the pages alone."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import numpy as np

from conformance.families.blocks import kernels as block_kernels
from conformance.families.blocks.kernels import QUESTIONS, Blocks
from conformance.families.blocks.ruling import BlockRuling, block_ruling
from lab.page_model import blocks as pages
from lab.page_model import numbers
from lab.page_model.inputs import bits_of, pattern_near, specials
from lab.page_model.kinds import Kinds, Verdict, note
from lab.page_model.numbers import Answer, Number
from specs.cases import Case
from specs.selection import select

ENCODED = ("mx-blocks", "nvfp4-blocks")
DECODED = ("mx-blocks-decode", "nvfp4-blocks-decode")
IN_A_BLOCK = 6
"""Elements of a block: fewer than share a scale, so that many blocks are compared."""
OF_ONE_GLOBAL = 40
"""Blocks that are compared with one global scale."""


def compare_blocks(count: int, seed: int, kinds: Kinds) -> None:
    """Compare about ``count`` scales and elements, spread over all cases of blocks."""
    encoded, decoded = select(ENCODED), select(DECODED)
    blocks = -(-count * 4 // 5 // len(encoded) // (IN_A_BLOCK + 1))
    for number, case in enumerate(encoded):
        random = Random(f"{seed} {number}")
        for start in range(0, blocks, OF_ONE_GLOBAL):
            _encode(case, min(OF_ONE_GLOBAL, blocks - start), random, kinds)
    elements = -(-count // 5 // len(decoded))
    for number, case in enumerate(decoded):
        random = Random(f"{seed} decode {number}")
        for start in range(0, elements, OF_ONE_GLOBAL):
            _decode(case, min(OF_ONE_GLOBAL, elements - start), random, kinds)


def _global(case: Case, random: Random) -> int | None:
    """Draw the float32 code of a global scale; None if the case has none."""
    if case.mode.get("global", "none") == "none":
        return None
    exponent = random.randrange(100, 150)
    return exponent << 23 | random.choice([0, random.getrandbits(23)])


def _whole(overall: int | None) -> tuple[float, Number | None]:
    if overall is None:
        return 1.0, None
    return float(np.uint32(overall).view(np.float32)), numbers.decode("float32", overall)


def _verdicts(ruling: BlockRuling, found: Blocks, nan: int | None = None) -> Iterator[Verdict]:
    """Yield what the reference allows for each element.

    Where the page allows any NaN, the reference allows the pattern ``nan``.
    """
    several = block_kernels.allowed_codes(ruling, found)
    columns = [each.reshape(-1).tolist() for each in several]
    asked, is_open = found.asked.reshape(-1).tolist(), found.is_open.reshape(-1).tolist()
    for at, question in enumerate(asked):
        if is_open[at]:
            yield Verdict(None, frozenset(), False)
            continue
        patterns = frozenset(each[at] for each in columns)
        if nan is not None and nan in patterns:
            patterns = frozenset({numbers.ANY_NAN})
        level = ruling.levels[QUESTIONS[question]]
        yield Verdict(patterns, patterns, level == "recommended")


# Encoding


def _block(case: Case, random: Random) -> list[int]:
    """Draw the codes of one block: at one magnitude, at random, special, or beside a bound."""
    pick = random.random()
    if pick < 0.06:
        return [random.choice(specials(case.source)) for _ in range(IN_A_BLOCK)]
    if pick < 0.12:
        return [random.getrandbits(bits_of(case.source)) for _ in range(IN_A_BLOCK)]
    layout = numbers.LAYOUTS[case.source]
    exponent = random.randrange(layout.lowest, -layout.lowest - 3)
    if random.random() < 0.5:
        exponent = random.randrange(-6, 7)
    most = _bound(case, random)
    number = numbers.product(most, numbers.power(1, exponent, negative=False))
    greatest = pattern_near(case.source, number) + random.choice([-1, 0, 0, 1])
    found = [greatest]
    for _ in range(IN_A_BLOCK - 1):
        part = numbers.finite(random.randrange(-64, 65) * random.choice([1, 2, 4]), 256)
        if random.random() < 0.5:
            part = numbers.finite(random.randrange(-(1 << 12), 1 << 12), 1 << 12)
        code = pattern_near(case.source, numbers.product(number, part))
        found.append((code + random.choice([-1, 0, 0, 1])) & ((1 << bits_of(case.source)) - 1))
    random.shuffle(found)
    return found


def _bound(case: Case, random: Random) -> Number:
    """Draw a magnitude at which the scale changes by one rule or another."""
    top, bottom = pages.LARGEST_ELEMENTS[case.target]
    code = random.randrange(1, 0x7F)
    choices = [
        numbers.finite(1),
        numbers.finite(top, bottom),
        numbers.finite(3 * top, 2 * bottom),
        numbers.finite(29, 4),
        numbers.finite((1 << (pages.MANTISSAS[case.target] + 2)) - 1, 4),
        numbers.finite(random.randrange(1 << 22, 1 << 23), 1 << 22),
        numbers.finite(top * 1414213562, bottom * 1000000000),
        numbers.product(numbers.finite(6), numbers.decode("float8e4m3fn", code)),
        numbers.product(
            numbers.finite(3),
            numbers.total(
                numbers.decode("float8e4m3fn", code), numbers.decode("float8e4m3fn", code - 1)
            ),
        ),
    ]
    return random.choice(choices)


def _encode(case: Case, blocks: int, random: Random, kinds: Kinds) -> None:
    ruling = block_ruling(case)
    overall = _global(case, random)
    factor, number = _whole(overall)
    rows = [_block(case, random) for _ in range(blocks)]
    x = np.array(rows, ruling.number.storage)
    found = block_kernels.scales(ruling, x, factor)
    scale_codes = found.codes.reshape(-1).tolist()
    rule = case.mode["rule"]
    shown = "" if overall is None else f" global={overall:#x}"
    for row, verdict in zip(rows, _verdicts(ruling, found), strict=True):
        if ruling.scale.name == "float8e8m0":
            due = pages.mx_scale(case.source, case.target, rule, row)
        else:
            due = pages.nvfp4_scale(case.source, rule, row, number)
        text = " ".join(f"{each:#x}" for each in row)
        note(kinds, f"{case.id} scale", due, verdict, text + shown)
    # An answer may have other scales than its numbers ask for: a few are drawn.
    for at in range(len(scale_codes)):
        if random.random() < 0.1:
            scale_codes[at] = random.choice(specials(ruling.scale.name))
        elif random.random() < 0.2:
            scale_codes[at] = min(max(scale_codes[at] + random.choice([-1, 1]), 0), 0xFF)
    scales = np.array(scale_codes, ruling.scale.storage).reshape(-1, 1)
    codes = _verdicts(ruling, block_kernels.codes(ruling, x, scales, factor))
    for row, scale_code in zip(rows, scale_codes, strict=True):
        scale = numbers.decode(ruling.scale.name, scale_code)
        if number is not None:
            scale = numbers.product(scale, number)
        is_finite = all(numbers.decode(case.source, each).kind == "finite" for each in row)
        for code in row:
            answer = element_answer(case, code, scale, is_finite=is_finite)
            example = f"{code:#x} scale={scale_code:#x}{shown}"
            note(kinds, f"{case.id} element", answer, next(codes), example)


def element_answer(case: Case, code: int, scale: Number, *, is_finite: bool) -> Answer:
    """The model's answer to an element; a page says nothing of a block that is not finite."""
    if not is_finite or scale.negative:
        return Answer(why="not finite: silent")
    is_stated = case.mode.get("global", "none") == "none" and (
        case.target in ("float8e4m3fn", "float8e5m2") if case.document == "mx-blocks" else True
    )
    answer = pages.element(case.source, case.target, code, scale)
    if case.document == "mx-blocks" and case.mode["rule"] != "round-up":
        is_stated = False
    return answer if is_stated else pages.implied(answer)


# Decoding


def _decode(case: Case, count: int, random: Random, kinds: Kinds) -> None:
    ruling = block_ruling(case)
    overall = _global(case, random)
    factor, number = _whole(overall)
    codes = [random.getrandbits(bits_of(case.source)) for _ in range(count)]
    scales = [random.getrandbits(bits_of(ruling.scale.name)) for _ in range(count)]
    for at in range(count):
        if random.random() < 0.1:
            scales[at] = random.choice(specials(ruling.scale.name))
        if ruling.scale.name == "float8e8m0" and random.random() < 0.6:
            scales[at] = random.randrange(105, 145)
    x = np.array(codes, ruling.element.storage).reshape(-1, 1)
    by = np.array(scales, ruling.scale.storage).reshape(-1, 1)
    found = block_kernels.products(ruling, x, by, factor)
    nan = block_kernels.nan_of(ruling.number)
    is_stated = overall is None and case.source in ("float8e4m3fn", "float8e5m2", "float4e2m1")
    if case.document == "mx-blocks-decode" and case.source == "float4e2m1":
        is_stated = False
    shown = "" if overall is None else f" global={overall:#x}"
    for code, scale_code, verdict in zip(codes, scales, _verdicts(ruling, found, nan), strict=True):
        scale = numbers.decode(ruling.scale.name, scale_code)
        if number is not None:
            scale = numbers.product(scale, number)
        answer = pages.decoded(case.target, case.source, code, scale)
        if not is_stated:
            answer = pages.implied(answer)
        note(kinds, case.id, answer, verdict, f"{code:#x} scale={scale_code:#x}{shown}")
