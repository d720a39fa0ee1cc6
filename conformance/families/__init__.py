"""The families of questions, and the table by which the core finds them.

Each lies in a folder or a module of its own here. Its functions are named by the records below, and
a module of a family is imported only when a case of it is met: a run of plain casts imports no
other family.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from specs.operations import operation_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from conformance.families.family import (
        Asks,
        CaseLines,
        Explain,
        Judge,
        LinesOf,
        Sentence,
        ShapedTensor,
        TensorFunctions,
    )
    from specs.cases import Case


@dataclass(frozen=True)
class Family:
    """A family of questions, by its operations as documents name them.

    Most fields name a function or object as ``module:name``, which ``member_of`` imports. ``cases``
    lists the cases of a version, and ``rules`` those that apply to one of them; without them, these
    are the pairs with their parameters, and the rules of single inputs. ``judge`` is the judge of a
    case, ``explain`` says what the document requires for a question, ``lines`` reads and judges
    JSON lines. ``followed`` names the mechanisms that explain a problem, and ``says`` returns the
    sentence of such a name. ``sentence`` reads a question in a sentence whose first word is an
    operation, and ``asks`` one about several cases.

    ``tensors`` has the functions of a family whose tensors have names, and ``dtypes`` names these.
    ``tensor`` has those of a family that takes one tensor, and judges its shape. ``page`` is the
    page of the report on which cases stand by their modes; others stand by their pair of dtypes.
    """

    operations: tuple[str, ...]
    judge: str
    explain: str
    lines: str = ""
    says: str = ""
    followed: str = ""
    cases: str = ""
    rules: str = ""
    dtypes: str = ""
    sentence: str = ""
    asks: str = ""
    tensors: str = ""
    tensor: str = ""
    page: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)
    """The methods of an adapter that its requests call besides those of ``oracles.protocol``, and
    the type that each returns, such as ``Bits``."""
    is_by_input: bool = False
    """Whether each input is a question of its own, which many documents can answer at once."""
    has_cases: bool = True
    """Whether documents have the operations; a question about several cases is no case."""


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
        followed="conformance.families.bitcast.wrongs:followed",
        cases="conformance.families.bitcast.ruling:cases",
        rules="conformance.families.bitcast.ruling:rules",
        tensor="conformance.families.bitcast.recorded:TENSOR",
    ),
    Family(
        ("quantize", "dequantize", "dynamic-quantize"),
        judge="conformance.families.quantization.judge:judge_quantization",
        explain="conformance.families.quantization.explanation:explain",
        lines="conformance.families.named_tensors:NamedTensorLines",
        says="conformance.families.quantization.wrongs:says",
        followed="conformance.families.quantization.wrongs:followed",
        cases="conformance.families.quantization.ruling:cases",
        rules="conformance.families.quantization.ruling:rules",
        dtypes="conformance.families.quantization.ruling:dtypes",
        sentence="conformance.families.quantization.sentence:read_sentence",
        tensors="conformance.families.quantization.recorded:TENSORS",
        page="conformance.families.quantization.page:PAGE",
    ),
    Family(
        ("block-quantize", "block-dequantize"),
        judge="conformance.families.blocks.judge:judge_blocks",
        explain="conformance.families.blocks.explanation:explain",
        lines="conformance.families.named_tensors:NamedTensorLines",
        says="conformance.families.blocks.sentences:says",
        followed="conformance.families.quantization.wrongs:followed",
        rules="conformance.families.blocks.ruling:rules",
        dtypes="conformance.families.blocks.ruling:dtypes",
        tensors="conformance.families.blocks.recorded:TENSORS",
        page="conformance.families.blocks.page:PAGE",
    ),
    Family(
        ("chain",),
        judge="conformance.families.chains.judge:judge_chains",
        explain="conformance.families.chains.explanation:explain_chain",
        asks="conformance.families.chains.questions:asks",
        says="conformance.families.chains.wrongs:says",
        followed="conformance.families.chains.wrongs:followed",
        has_cases=False,
    ),
)
"""All families. A chain is no case but several: the check of a pair calls its judge itself."""
OPERATIONS = tuple(name for each in FAMILIES if each.has_cases for name in each.operations)
"""All operations of documents, in the order in which people see them."""
METHODS = {name: type_ for each in FAMILIES for name, type_ in each.methods.items()}
"""The adapters' methods that only a family's requests call, with the types they return."""
BY_OPERATION = {operation: each for each in FAMILIES for operation in each.operations}
NAMED_TENSORS = tuple(name for each in FAMILIES if each.tensors for name in each.operations)
"""The operations that take and return tensors by name."""
SHAPED_TENSORS = tuple(name for each in FAMILIES if each.tensor for name in each.operations)
"""The operations that take one tensor, of which also the shape is judged."""


def family_of(case: Case) -> Family:
    """The family of a case."""
    return BY_OPERATION[operation_of(case)]


@cache
def member_of(operation: str, purpose: str) -> Any:
    """Return the object that an operation's family names in the field ``purpose``; None if none."""
    name = getattr(BY_OPERATION[operation], purpose)
    return resolve_name(name) if name else None


def judge_of(case: Case) -> Judge:
    """The judge of a case."""
    return member_of(operation_of(case), "judge")  # type: ignore[no-any-return]


def explain_of(case: Case) -> Explain:
    """Return the function that explains questions about a case."""
    return member_of(operation_of(case), "explain")  # type: ignore[no-any-return]


def lines_of(case: Case) -> CaseLines:
    """The reader and judge of the JSON lines of a case."""
    lines: LinesOf = member_of(operation_of(case), "lines")
    return lines(case)


def tensor_of(case: Case) -> ShapedTensor | None:
    """Return the functions for one shaped tensor of a case's family; None if it has none."""
    return member_of(operation_of(case), "tensor")  # type: ignore[no-any-return]


def tensors_of(case: Case) -> TensorFunctions:
    """Return the functions for tensors with names of a case's family, which must have some."""
    return member_of(operation_of(case), "tensors")  # type: ignore[no-any-return]


def sentence_of(words: Sequence[str]) -> Sentence | None:
    """Read a question in a sentence; None if its first word is no operation with sentences."""
    read = member_of(words[0], "sentence") if words[0] in BY_OPERATION else None
    return read(words) if read is not None else None


def several_of(words: Sequence[str]) -> Asks | None:
    """Return what reads a question about a chain of casts; None if it is about one case."""
    from specs.chains import is_chain  # Few commands ask questions.
    from specs.questions import parts_of

    return member_of("chain", "asks") if is_chain(parts_of(words).path) else None
