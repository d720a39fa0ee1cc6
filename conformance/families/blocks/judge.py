"""Judges blocks: whether a library gives the scales and codes that a rule of a document gives.

Scales and codes are graded apart: codes by the scales that the library gave itself. Where a result
is wrong, its block is asked once more by itself, with zeros in the place of all that does not
matter. So a finding shows the smallest block; and where that is answered rightly, blocks change
each other. What no text settles is not judged, but noted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np

from conformance.families.blocks.code_wrongs import followed_in_codes
from conformance.families.blocks.extreme_scales import extreme_scales
from conformance.families.blocks.grading import (
    GLOBAL,
    SCALE,
    GradedBlocks,
    Part,
    X,
    Y,
    magnitudes_of,
)
from conformance.families.blocks.inputs import DRAWS, BlockInput, block_inputs, drawn_inputs
from conformance.families.blocks.kernels import NUMBER, QUESTIONS, allowed_codes, in_blocks
from conformance.families.blocks.product_wrongs import followed_in_products
from conformance.families.blocks.ruling import BlockAnswer, BlockRuling, block_ruling
from conformance.families.blocks.scale_wrongs import (
    Among,
    followed_in_scales,
    graded_scales,
)
from conformance.families.blocks.sentences import BESIDE_OTHERS
from conformance.families.named_tensors import AboutTensors, ask_listed
from conformance.families.quantization.wrongs import IN_OTHER_TENSORS
from conformance.judging.answer_digests import AnswerDigester, spread
from conformance.judging.asking import Ask, Subject, ask
from conformance.judging.verdicts import answers_none, problem_of, without_answer
from oracles.backend.replies import Answered, Declined, NoAnswer
from oracles.backend.requests import Script
from oracles.protocol import Bits, Mask
from reports.counterexample.drawing import datum_with_value
from reports.grading.divergences import index_of_simplest
from reports.judgement import AnswerExample, Judgement
from reports.problems import Note, Problem, Unoffered, WrongForm, WrongTensor
from specs.cases import Case
from specs.formats import Format
from specs.model.block_entry import BlockQuestion
from specs.plain_text import plain_text

MOST_SHOWN = 3
"""The most drawn tensors that a problem names."""


Search = Callable[[Sequence[GradedBlocks], Part], tuple[str, ...]]
"""Returns the names of the mechanisms that give all codes or numbers of a part."""


class WrongResult(NamedTuple):
    """The elements of a result that break one rule, or a part of them.

    ``answer`` is what the document says there. ``at`` has each tensor with such elements, and the
    mask of these in its result.
    """

    result: str
    answer: BlockAnswer
    at: list[tuple[GradedBlocks, Mask]]
    part: Part

    @property
    def elements(self) -> int:
        """The number of these elements in all tensors."""
        return sum(int(np.count_nonzero(mask)) for _, mask in self.at)


class Shown(NamedTuple):
    """The blocks that show a fault, and the index of the wrong element in the result.

    ``is_alone`` is false if the block is wrong only beside other blocks.
    """

    blocks: GradedBlocks
    place: tuple[int, ...]
    is_alone: bool


class BlockFault(NamedTuple):
    """The wrong elements of a fault, the block that shows it, and the mechanisms explaining it."""

    wrong: WrongResult
    shown: Shown
    followed: tuple[str, ...]


def judge_blocks(subject: Subject, case: Case) -> Ask[Judgement]:
    """Judge a case by tensors of blocks, and digest the answers to them."""
    digester = AnswerDigester()
    return digester.added_to((yield from _judge_blocks(subject, case, digester)))


def _judge_blocks(subject: Subject, case: Case, digester: AnswerDigester) -> Ask[Judgement]:
    """Judge a case by tensors of blocks; those that the library declines are left out.

    The first tensor with results of a wrong shape decides the verdict alone; one with a missing
    answer only if nothing is wrong in the others. If the library declines all, the verdict is
    ``unsupported``.
    """
    ruling = block_ruling(case)
    settings = subject.settings
    inputs = block_inputs(ruling, settings.seed)
    replies = yield from ask_listed(case, [each.tensors for each in inputs])
    if not (subject.few_shapes or answers_none(replies)):
        number = settings.draws(case, DRAWS)
        more = [*drawn_inputs(case, ruling, inputs, settings.seed, number)]
        replies = [*replies, *(yield [AboutTensors(case, each.tensors) for each in more])]
        inputs += more
    answered: list[GradedBlocks] = []
    drawn: list[GradedBlocks] = []
    declined: list[tuple[BlockInput, Declined]] = []
    failed: list[tuple[NoAnswer, int]] = []
    for given, reply in zip(inputs, replies, strict=True):
        digester.add(given.tensors, reply)
        match reply:
            case Answered(results):
                graded = GradedBlocks(ruling, given.tensors, results, given.where)
                if graded.shape_fault:
                    form = WrongForm(graded.shape_fault, given.where)
                    return Judgement(case.id, subject.name, subject.failed(case), (form,))
                (drawn if given.is_drawn else answered).append(graded)
            case Declined() as no:
                declined.append((given, no))
            case missing:
                failed.append((missing, given.tensors[X].size))
    every = [*answered, *drawn]
    for graded in every:
        if not digester.has_all_examples:
            digester.show(_free_examples(graded))
    if not (every or failed):
        unoffered = Unoffered(declined[0][1].text)
        return Judgement(case.id, subject.name, "unsupported", (unoffered,))
    problems: list[Problem] = []
    script = ""
    for wrong in _wrong(ruling, answered):
        for each in (yield from _explained(case, wrong, answered)):
            of_fault = yield from _script(subject, case, each.shown)
            problems.append(replace(_problem(each, answered), script=of_fault))
            script = script or of_fault
    for wrong in _wrong(ruling, drawn):
        # Where a listed tensor breaks the rule, too, it shows the fault already.
        if all((wrong.result, wrong.answer.rule) != _broken(each) for each in problems):
            shown = yield from _smallest(case, wrong)
            of_fault = yield from _script(subject, case, shown)
            # Most faults of drawn tensors have no mechanism, which a small one shows sooner.
            least = min((each for each, _ in wrong.at), key=lambda each: each.x.size)
            followed = _followed(wrong, [least]) and _followed(wrong, every)
            fault = BlockFault(wrong, shown, followed or (IN_OTHER_TENSORS,))
            where = " and ".join(each.where for each, _ in wrong.at[:MOST_SHOWN])
            problem = _problem(fault, drawn)
            problems.append(replace(problem, script=of_fault, where=f"only {where}"))
            script = script or of_fault
    levels = {each.level for each in problems if isinstance(each, WrongTensor)}
    if failed and not levels:
        return (yield from without_answer(subject, case, *failed[0]))
    problems += [problem_of(missing) for missing, _ in failed[:1]]
    problems += [Note(f"not asked {given.where}: {no.text}") for given, no in declined]
    problems += map(Note, notes_on_open(ruling, answered))
    return Judgement(
        case.id,
        subject.name,
        subject.graded(case, levels, is_open=False),
        tuple(problems),
        inputs=sum(each.x.size for each in every),
        open_inputs=sum(int(np.count_nonzero(each.expected[Y].is_open)) for each in every),
        reproduction=script,
    )


def _free_examples(blocks: GradedBlocks) -> Iterator[AnswerExample]:
    """Yield some elements of results for which several answers are allowed."""
    ruling = blocks.ruling
    for result, expected in blocks.expected.items():
        free = expected.is_open.copy()
        if result == Y and not ruling.is_decoding:
            for codes in allowed_codes(ruling, expected):
                free |= codes != expected.codes
        form = _result_format(ruling, result)
        for flat in spread(free):
            place = tuple(int(each) for each in np.unravel_index(flat, free.shape))
            got = int(blocks.results[result][place])
            given = _given_words(Shown(blocks, place, is_alone=True), result)
            yield AnswerExample(f"{given}: {result}", datum_with_value(form, got))


def _result_format(ruling: BlockRuling, result: str) -> Format:
    if result == SCALE:
        return ruling.scale
    return ruling.number if ruling.is_decoding else ruling.element


def _broken(problem: Problem) -> tuple[str, str] | None:
    return (problem.tensor, problem.rule) if isinstance(problem, WrongTensor) else None


def _wrong(ruling: BlockRuling, answered: Sequence[GradedBlocks]) -> Iterator[WrongResult]:
    """Yield the wrong elements of each result by the rule that they break.

    Scales come before codes, and required rules before recommended ones.
    """
    found: dict[tuple[str, str], WrongResult] = {}
    for each in answered:
        for result, mask in each.wrong.items():
            asked = each.expected[result].asked
            for number in np.unique(asked[mask]).tolist():
                answer = ruling.answers[QUESTIONS[number]]
                wrong = found.setdefault(
                    (result, answer.rule), WrongResult(result, answer, [], Part(answer.rule))
                )
                wrong.at.append((each, mask & (asked == number)))
    yield from sorted(
        found.values(), key=lambda each: (each.result == Y, each.answer.level != "required")
    )


def _smallest(case: Case, wrong: WrongResult) -> Ask[Shown]:
    """Return the simplest wrong block of the first tensor, alone if it is wrong alone too.

    Else the block is shown in its tensor. ``is_alone`` is false only if the block, requested alone,
    gets a right answer.
    """
    blocks, mask = wrong.at[0]
    ruling = blocks.ruling
    place = _simplest_place(blocks, wrong.result, mask)
    small, at = _alone(blocks, wrong.result, place)
    match (yield from ask(AboutTensors(case, small))):
        case Answered(results):
            alone = GradedBlocks(ruling, small, results)
            if alone.shape_fault:
                return Shown(blocks, place, is_alone=True)
            if alone.wrong[wrong.result][at]:
                return Shown(alone, at, is_alone=True)
            return Shown(blocks, place, is_alone=False)
    # Not every library takes a single block.
    return Shown(blocks, place, is_alone=True)


def _simplest_place(blocks: GradedBlocks, result: str, mask: Mask) -> tuple[int, ...]:
    """Return the index of the simplest element among those that ``mask`` selects in a result.

    The input decides which is simplest. Of codes and products, only those whose scale is nearest to
    one count.
    """
    ruling = blocks.ruling
    source, inputs = ruling.element if ruling.is_decoding else ruling.number, blocks.x
    if result == SCALE:
        inputs = blocks.largest_patterns
    else:
        distance = np.abs(blocks.scale.astype(np.int64) - ruling.scale.one_code)
        distance = blocks.unblocked(np.repeat(distance, ruling.size, axis=-1))
        mask = mask & (distance == distance[mask].min())
    flat = index_of_simplest(source, inputs.reshape(-1), mask.reshape(-1))
    return tuple(int(each) for each in np.unravel_index(flat, mask.shape))


def _alone(
    blocks: GradedBlocks, result: str, place: tuple[int, ...]
) -> tuple[dict[str, Bits], tuple[int, ...]]:
    """Return the tensors of one block that may show a fault alone, and the element's index there.

    Numbers that change neither the scale nor the element become zero.
    """
    size, x = blocks.ruling.size, blocks.x
    block = np.zeros((1, size), x.dtype)
    small: dict[str, Bits] = {X: block}
    if GLOBAL in blocks.tensors:
        small[GLOBAL] = blocks.tensors[GLOBAL]
    if result == SCALE:
        largest = blocks.largest_patterns[place]
        where = int(np.flatnonzero(in_blocks(size, x)[place] == largest)[0])
        block[0, where] = largest
        return small, (0, 0)
    *front, column = place
    if blocks.ruling.is_decoding:
        small[SCALE] = blocks.scale[(*front, column // size)].reshape(1, 1)
    else:
        row = in_blocks(size, x)[(*front, column // size)]
        top = int(magnitudes_of(blocks.ruling.number, row).argmax())
        block[0, top] = row[top]
    block[0, column % size] = x[place]
    return small, (0, column % size)


def _explained(
    case: Case, wrong: WrongResult, answered: Sequence[GradedBlocks]
) -> Ask[list[BlockFault]]:
    """Return the faults of a broken rule, each with its smallest block and its mechanisms.

    There is one fault if mechanisms give all answers, or all that the rule decides, or if the
    smallest block is right alone. Else extreme blocks, and zeros among codes, are explained apart
    from the others.
    """
    followed = _followed(wrong, answered)
    shown = yield from _smallest(case, wrong)
    if followed or not shown.is_alone:
        return [BlockFault(wrong, shown, followed or (BESIDE_OTHERS,))]
    if wrong.result == SCALE:
        return (yield from _scales_apart(case, wrong, answered))
    found = []
    for each in _parted(wrong):
        shown = yield from _smallest(case, each)
        found.append(BlockFault(each, shown, _search(answered)(answered, each.part)))
    return found


def _followed(wrong: WrongResult, answered: Sequence[GradedBlocks]) -> tuple[str, ...]:
    """Return the mechanisms that give all answers, or all that the broken rule decides."""
    if wrong.result == SCALE:
        return followed_in_scales(answered)
    search = _search(answered)
    return search(answered, Part()) or search(answered, wrong.part)


def _search(answered: Sequence[GradedBlocks]) -> Search:
    return followed_in_products if answered[0].ruling.is_decoding else followed_in_codes


def _scales_apart(
    case: Case, wrong: WrongResult, answered: Sequence[GradedBlocks]
) -> Ask[list[BlockFault]]:
    """Return the faults of extreme blocks, and then what explains all other wrong scales.

    If no mechanism does, the other extreme blocks and the ordinary ones are explained apart.
    """
    found = []
    left: Among = graded_scales
    for name, covers in extreme_scales(answered):
        if part := _among(wrong, _both(left, covers)):
            found.append(BlockFault(part, (yield from _smallest(case, part)), (name,)))
            left = _without(left, covers)
    followed = followed_in_scales(answered, left)
    regions = [left] if followed else [_both(left, _is_ordinary), _without(left, _is_ordinary)]
    for region in regions:
        if part := _among(wrong, region):
            names = followed or followed_in_scales(answered, region)
            found.append(BlockFault(part, (yield from _smallest(case, part)), names))
    return found


def _among(wrong: WrongResult, region: Among) -> WrongResult | None:
    """Return the wrong scales of the blocks that ``region`` selects; None if there are none."""
    masks = [(each, mask & region(each)) for each, mask in wrong.at]
    at = [(each, mask) for each, mask in masks if mask.any()]
    return wrong._replace(at=at) if at else None


def _is_ordinary(each: GradedBlocks) -> Mask:
    return ~each.extreme_blocks


def _both(first: Among, second: Among) -> Among:
    return lambda each: first(each) & second(each)


def _without(first: Among, second: Among) -> Among:
    return lambda each: first(each) & ~second(each)


def _parted(wrong: WrongResult) -> Iterator[WrongResult]:
    """Yield parts of the wrong elements: of extreme blocks or not, and zeros or other codes."""
    for is_extreme, is_zero in product((False, True), repeat=2):
        part = replace(wrong.part, is_extreme=is_extreme, is_zero=is_zero)
        masks = [(each, mask & each.graded(wrong.result, part)) for each, mask in wrong.at]
        if at := [(each, mask) for each, mask in masks if mask.any()]:
            yield wrong._replace(at=at, part=part)


def _problem(explained: BlockFault, answered: Sequence[GradedBlocks]) -> WrongTensor:
    wrong, shown, followed = explained
    blocks, place, _ = shown
    ruling, result = blocks.ruling, wrong.result
    expected = blocks.expected[result]
    target = _result_format(ruling, result)
    every: Sequence[Bits] = (expected.codes,)
    if result == Y and not ruling.is_decoding:
        every = allowed_codes(ruling, expected)
    allowed = dict.fromkeys(datum_with_value(target, int(each[place])) for each in every)
    return WrongTensor(
        wrong.answer.rule,
        wrong.answer.clause,
        wrong.answer.level,
        result,
        _given_words(shown, result),
        datum_with_value(target, int(blocks.results[result][place])),
        tuple(allowed),
        wrong.elements,
        sum(each.results[result].size for each in answered),
        followed,
    )


def _given_words(shown: Shown, result: str) -> str:
    """Describe a faulty block by its largest number, or by the wrong element's input and scale."""
    blocks, place, is_alone = shown
    ruling = blocks.ruling
    source = ruling.element if ruling.is_decoding else ruling.number
    size, x = ruling.size, blocks.x
    if result == SCALE:
        words = _block_words(source, in_blocks(size, x)[place])
    else:
        *front, column = place
        number = datum_with_value(source, int(x[place]))
        scale = datum_with_value(ruling.scale, int(blocks.scale[(*front, column // size)]))
        words = f"{number} in a block of scale {scale}"
    if GLOBAL in blocks.tensors:
        whole = np.array(blocks.tensors[GLOBAL]).view(np.float32)
        words += f", global scale {float(whole):g}"
    return words if is_alone else f"{words}, beside other blocks"


def _block_words(source: Format, row: Bits) -> str:
    """Name the largest number of a block, and say whether its other elements are all zeros."""
    magnitudes = magnitudes_of(source, row)
    largest = datum_with_value(source, int(row[magnitudes.argmax()]))
    others = "zeros" if np.count_nonzero(magnitudes) == 1 else "smaller numbers"
    return f"a block of {largest} and {others}"


def _script(subject: Subject, case: Case, shown: Shown) -> Ask[str]:
    """Return the adapter's script for the block that shows a fault.

    It is empty if the adapter writes none, if the run hides scripts of documents that the backend
    does not claim, or if the block is shown within a larger tensor.
    """
    ruling = shown.blocks.ruling
    hidden = subject.settings.hides_unclaimed and not subject.claims(case)
    if hidden or not shown.is_alone or shown.blocks.x.size > ruling.size:
        return ""
    match (yield from ask(Script(AboutTensors(case, shown.blocks.tensors)))):
        case Answered(text):
            return plain_text(text)
    return ""


WHAT: Mapping[BlockQuestion, str] = {
    "zero-block": "blocks of zeros",
    "nan-block": "blocks with a NaN",
    "infinity-block": "blocks with an infinity",
    "scale-below-smallest": "blocks whose scale would be below the smallest",
    "scale-above-largest": "blocks whose scale would be above the largest",
}
MOST_NAMED = 3


def notes_on_open(ruling: BlockRuling, answered: Sequence[GradedBlocks]) -> Iterator[str]:
    """Yield a note on each kind of block whose scale is open: which scales such blocks got.

    Kinds that no tensor has are left out, and all of them if the case decodes.
    """
    if ruling.is_decoding:
        return
    for question, what in WHAT.items():
        if not ruling.answers[question].is_open:
            continue
        scales, codes = [], []
        for each in answered:
            here = each.expected[SCALE].asked == NUMBER[question]
            scales.append(each.scale[here])
            codes.append(in_blocks(ruling.size, each.results[Y])[here].reshape(-1))
        given = np.concatenate(scales)
        if given.size:
            note = f"{what} get {_named(ruling.scale, given, 'the scale', 'scales')}"
            if question in ("nan-block", "infinity-block"):
                note += f", and {_special_codes(ruling, answered, question)}"
            yield note


def _special_codes(
    ruling: BlockRuling, answered: Sequence[GradedBlocks], question: BlockQuestion
) -> str:
    """Return words for the codes of NaNs or infinities in the blocks that ``question`` is about."""
    number = ruling.number
    found = []
    for each in answered:
        magnitude = magnitudes_of(number, each.x)
        is_special = magnitude > number.infinity_code
        if question == "infinity-block":
            is_special = magnitude == number.infinity_code
        here = each.expected[Y].asked == NUMBER[question]
        found.append(each.results[Y][is_special & here])
    return _named(ruling.element, np.concatenate(found), "the code", "codes")


def _named(fmt: Format, codes: Bits, one: str, many: str) -> str:
    """Name up to three different codes after ``one`` or ``many``, or say how many there are."""
    different = np.unique(codes).tolist()
    if len(different) == 1:
        return f"{one} {datum_with_value(fmt, different[0])}"
    if len(different) <= MOST_NAMED:
        return f"{many} {', '.join(datum_with_value(fmt, each) for each in different)}"
    return f"{len(different)} different {many}"
