"""The families of questions, and the table by which the core finds them.

Each lies in a folder of its own here. Its functions are named by the records below, and a module of
a family is imported only when a case of it is met: a run of plain casts imports no other family.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING

from specs.operations import operation_of

if TYPE_CHECKING:
    from conformance.families.family import (
        CaseLines,
        Explain,
        Judge,
        LinesOf,
        Says,
        TensorFunctions,
    )
    from specs.cases import Case


@dataclass(frozen=True)
class Family:
    """A family of questions, by its operations as documents name them.

    ``judge`` is the judge of a case, ``explain`` tells a person what the document says of a
    question, ``lines`` reads and judges JSON lines, and ``says`` has the sentence of what a backend
    does instead. ``tensors`` has the functions of a family whose tensors have names.
    """

    operations: tuple[str, ...]
    judge: str
    explain: str
    lines: str = ""
    says: str = ""
    tensors: str = ""
    is_by_input: bool = False
    """Whether each input is a question of its own, which many documents can answer at once."""


FAMILIES = (
    Family(
        ("cast", "call"),
        judge="conformance.families.cast.judge:examine",
        explain="conformance.families.cast.explanation:explain",
        lines="conformance.families.cast.recorded:CastLines",
        is_by_input=True,
    ),
    Family(
        ("bitcast",),
        judge="conformance.families.bitcast.judge:judge_bitcast",
        explain="conformance.families.bitcast.recorded:explain",
        lines="conformance.families.bitcast.recorded:BitcastLines",
        says="conformance.families.bitcast.wrongs:says",
    ),
    Family(
        ("quantize", "dequantize", "dynamic-quantize"),
        judge="conformance.families.quantization.judge:judge_quantization",
        explain="conformance.families.quantization.explanation:explain",
        lines="conformance.families.named_tensors:NamedTensorLines",
        says="conformance.families.quantization.wrongs:says",
        tensors="conformance.families.quantization.recorded:TENSORS",
    ),
    Family(
        ("block-quantize", "block-dequantize"),
        judge="conformance.families.blocks.judge:judge_blocks",
        explain="conformance.families.blocks.explanation:explain",
        lines="conformance.families.named_tensors:NamedTensorLines",
        says="conformance.families.blocks.sentences:says",
        tensors="conformance.families.blocks.recorded:TENSORS",
    ),
    Family(
        ("chain",),
        judge="conformance.families.chains.judge:judge_chains",
        explain="conformance.families.chains.explanation:explain_chain",
        says="conformance.families.chains.wrongs:says",
    ),
)
"""All families. A chain is no case but several: the check of a pair calls its judge itself."""
BY_OPERATION = {operation: each for each in FAMILIES for operation in each.operations}


def family_of(case: Case) -> Family:
    """The family of a case."""
    return BY_OPERATION[operation_of(case)]


@cache
def _resolved(name: str) -> object:
    found: object = resolve_name(name)
    return found


def judge_of(case: Case) -> Judge:
    """The judge of a case."""
    return _resolved(family_of(case).judge)  # type: ignore[return-value]


def explain_of(case: Case) -> Explain:
    """The function that explains a question about a case."""
    return _resolved(family_of(case).explain)  # type: ignore[return-value]


def lines_of(case: Case) -> CaseLines:
    """The reader and judge of the JSON lines of a case."""
    lines: LinesOf = _resolved(family_of(case).lines)  # type: ignore[assignment]
    return lines(case)


def tensors_of(case: Case) -> TensorFunctions:
    """The functions of the family of a case whose tensors have names."""
    return _resolved(family_of(case).tensors)  # type: ignore[return-value]


def says(question: str, name: str) -> str:
    """The sentence of what a backend does instead, by the operation that is asked, or `chain`."""
    say: Says = _resolved(BY_OPERATION[question].says)  # type: ignore[assignment]
    return say(name)
