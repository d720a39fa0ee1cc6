"""Resolves a case of blocks to its ruling: the document's answers about scales and elements.

A block shares one scale. Quantizing gives the scale, which follows from the largest magnitude of
the block by the rule that the case names, and one code for each element divided by the scale. A
document answers *questions*: which scale an ordinary block gets, or a block of zeros, and which
code a quotient beyond the largest code gets. Exactly one rule answers each question of a case, or
leaves it open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from specs.cases import Case
from specs.editions import edition
from specs.formats import Format, format_named
from specs.loader import Document, document_named
from specs.model.block_entry import OPEN, BlockQuestion, BlockWord, questions
from specs.model.vocabulary import Level
from specs.operations import SCALE, TensorDtypes, X, Y
from specs.ruling import CaseRule

RULINGS_KEPT = 1 << 12
RULE, BLOCK, GLOBAL, GIVEN = "rule", "block", "global", "given"
"""The modes of cases of blocks, and the value of `global` by which there is a global scale."""
GLOBAL_DTYPE = "float32"
"""The dtype of global scales, in every document that has them."""


@dataclass(frozen=True)
class BlockAnswer:
    """The answer to a question of a case: a word, and the rule that gives it."""

    rule: str
    clause: str
    level: Level
    word: BlockWord

    @property
    def is_open(self) -> bool:
        """Whether any result is allowed."""
        return self.word == OPEN


@dataclass(frozen=True)
class BlockRuling:
    """A document's answers to the questions of a case of blocks.

    ``number`` is the dtype of the numbers and ``element`` that of the codes, whichever of them is
    the source; ``size`` is how many elements share a scale.
    """

    number: Format
    element: Format
    scale: Format
    size: int
    has_global: bool
    is_decoding: bool
    answers: Mapping[BlockQuestion, BlockAnswer]

    @cached_property
    def levels(self) -> dict[BlockQuestion, Level]:
        """The level of each answer."""
        return {question: answer.level for question, answer in self.answers.items()}

    def word(self, question: BlockQuestion) -> BlockWord:
        """Return the word that answers a question of the case."""
        return self.answers[question].word

    def __hash__(self) -> int:
        return id(self)


@lru_cache(RULINGS_KEPT)
def block_ruling(case: Case) -> BlockRuling:
    """Return a shipped document's ruling of a case of blocks."""
    return rule_blocks(document_named(case.document), case)


def rule_blocks(document: Document, case: Case) -> BlockRuling:
    """Return a case's ruling; raise DocumentError unless exactly one rule answers each question."""
    entry = document.entry
    assert entry.blocks is not None
    is_decoding = entry.operation == "block-dequantize"
    answers: dict[BlockQuestion, BlockAnswer] = {}
    for question, answer in _answers(document, case):
        if question in answers:
            both = f"{answers[question].rule} and {answer.rule}"
            message = f"overlap: {both} both answer `{question}` of {case.id}"
            raise document.source.error(("rules", answer.rule), message)
        answers[question] = answer
    number, element = format_named(case.source), format_named(case.target)
    if is_decoding:
        number, element = element, number
    asked = questions(element, is_decoding=is_decoding)
    for question in asked:
        if question not in answers:
            message = f"gap: no rule answers `{question}` of {case.id}"
            raise document.source.error(("rules",), message)
    return BlockRuling(
        number,
        element,
        format_named(entry.blocks.scale),
        int(case.mode[BLOCK]),
        case.mode.get(GLOBAL) == GIVEN,
        is_decoding,
        {question: answers[question] for question in asked},
    )


def _answers(document: Document, case: Case) -> Iterator[tuple[BlockQuestion, BlockAnswer]]:
    """Yield each question that a rule of the case answers, with the answer.

    A question that two rules answer is yielded twice.
    """
    resolved = edition(document, case.version)
    for name in resolved.rules:
        rule = document.entry.rules[name]
        if not resolved.matches(rule.when, case):
            continue
        for question, cell in rule.blocks.items():
            level = cell.level or ("unspecified" if cell.is_ == OPEN else rule.level)
            yield question, BlockAnswer(name, cell.clause or rule.clause, level, cell.is_)


def rules(document: Document, case: Case) -> Iterator[CaseRule]:
    """Yield the rule that answers each question of a case."""
    for question, answer in rule_blocks(document, case).answers.items():
        yield CaseRule(answer.rule, answer.level, answer.clause, question, answer.is_open)


def dtypes(case: Case) -> TensorDtypes:
    """Return the names and dtypes of the tensors that a case takes and returns.

    Decoding takes the scales, and quantizing returns them.
    """
    ruling = block_ruling(case)
    scale = {SCALE: ruling.scale.name}
    given = {GLOBAL: GLOBAL_DTYPE} if ruling.has_global else {}
    if ruling.is_decoding:
        return TensorDtypes({X: case.source} | scale | given, {Y: case.target})
    return TensorDtypes({X: case.source} | given, scale | {Y: case.target})
