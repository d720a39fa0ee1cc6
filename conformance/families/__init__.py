"""The families of questions, and the table by which the core finds them.

Each lies in a folder or a module of its own here. The records below name its functions, and a
module of a family is imported only when a case of that family is used: a run of plain casts imports
no other family.
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
    from conformance.families.small_tensors import SmallTensors
    from oracles.backend.requests import MethodRequest
    from specs.cases import Case


@dataclass(frozen=True)
class Family:
    """A family of questions: the operations that it covers, and where its functions are.

    Most fields name a function or object as ``module:name``, which ``member_of`` imports; empty
    means that the family has none. ``judge`` judges a case, and ``explain`` says what the document
    requires for a question. ``request`` is the kind of request that a backend must answer to be
    judged. ``cases`` lists the cases of a version, and ``rules`` the rules of a
    case. Without these two, the cases are the pairs in all their modes, and the rules are those for
    single inputs. ``lines`` reads and judges JSON lines. ``followed`` returns the names of the
    mechanisms that explain a problem, and ``says`` the sentence of a finding with such a name.
    ``sentence`` reads a question about one case whose first word is an operation, ``asks`` a
    question about several cases.

    ``tensors`` has the functions of a family whose tensors have names, and ``dtypes`` returns the
    names and dtypes of a case's tensors. ``tensor`` has the functions of a family that takes one
    tensor and judges the result's shape. ``small`` returns small tensors of a case with all that is
    allowed for them. ``page`` is the page of the report on which cases stand by
    their modes; other cases stand by their pair of dtypes. ``origin`` is the class of problems that
    say where wrong values come from.
    """

    operations: tuple[str, ...]
    judge: str
    explain: str
    request: str = ""
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
    small: str = ""
    page: str = ""
    origin: str = ""
    methods: Mapping[str, str] = field(default_factory=dict)
    """The adapter methods that the family's requests call besides those of ``oracles.protocol``,
    each with the name of the type that it returns, such as ``Bits``."""
    is_by_input: bool = False
    """Whether each input is a question of its own, which many documents can answer at once."""
    has_cases: bool = True
    """Whether documents define cases of the operations; a chain, which joins several, is no
    case."""


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
        request="conformance.families.bitcast.bits:Bitcast",
        lines="conformance.families.bitcast.recorded:BitcastLines",
        says="conformance.families.bitcast.wrongs:says",
        followed="conformance.families.bitcast.wrongs:followed",
        cases="conformance.families.bitcast.ruling:cases",
        rules="conformance.families.bitcast.ruling:rules",
        tensor="conformance.families.bitcast.recorded:TENSOR",
        small="conformance.families.bitcast.small:small_tensors",
    ),
    Family(
        ("quantize", "dequantize", "dynamic-quantize"),
        judge="conformance.families.quantization.judge:judge_quantization",
        explain="conformance.families.quantization.explanation:explain",
        request="conformance.families.named_tensors:AboutTensors",
        lines="conformance.families.named_tensors:NamedTensorLines",
        says="conformance.families.quantization.wrongs:says",
        followed="conformance.families.quantization.wrongs:followed",
        cases="conformance.families.quantization.ruling:cases",
        rules="conformance.families.quantization.ruling:rules",
        dtypes="conformance.families.quantization.ruling:dtypes",
        sentence="conformance.families.quantization.sentence:read_sentence",
        tensors="conformance.families.quantization.recorded:TENSORS",
        small="conformance.families.quantization.small:small_tensors",
        page="conformance.families.quantization.page:PAGE",
    ),
    Family(
        ("block-quantize", "block-dequantize"),
        judge="conformance.families.blocks.judge:judge_blocks",
        explain="conformance.families.blocks.explanation:explain",
        request="conformance.families.named_tensors:AboutTensors",
        lines="conformance.families.named_tensors:NamedTensorLines",
        says="conformance.families.blocks.sentences:says",
        followed="conformance.families.quantization.wrongs:followed",
        rules="conformance.families.blocks.ruling:rules",
        dtypes="conformance.families.blocks.ruling:dtypes",
        tensors="conformance.families.blocks.recorded:TENSORS",
        small="conformance.families.blocks.small:small_tensors",
        page="conformance.families.blocks.page:PAGE",
    ),
    Family(
        ("carry",),
        judge="conformance.families.carriers.judge:judge_carrier",
        explain="conformance.families.cast.explanation:explain",
        request="conformance.families.carriers.request:Carry",
        lines="conformance.families.cast.recorded:CastLines",
        cases="conformance.families.carriers.ruling:cases",
        page="conformance.families.carriers.page:PAGE",
        origin="conformance.families.carriers.faulty_step:FaultyStep",
        methods={"carry": "Bits", "reproduce_carry": "str"},
        is_by_input=True,
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
"""All families. A chain is a check of a pair, not a case: the code of checks calls its judge."""
OPERATIONS = tuple(name for each in FAMILIES if each.has_cases for name in each.operations)
"""All operations of documents, in the order in which people see them."""
METHODS = {name: type_ for each in FAMILIES for name, type_ in each.methods.items()}
"""The adapters' methods that only a family's requests call, with the types they return."""
BY_INPUT = tuple(name for each in FAMILIES if each.is_by_input for name in each.operations)
"""The operations of which each input is a question of its own."""
PROBLEMS = {each.origin.rpartition(":")[2]: each.origin for each in FAMILIES if each.origin}
"""The classes of problems that only a family has, by their names in JSON."""
BY_OPERATION = {operation: each for each in FAMILIES for operation in each.operations}
NAMED_TENSORS = tuple(name for each in FAMILIES if each.tensors for name in each.operations)
"""The operations that take and return tensors by name."""
SHAPED_TENSORS = tuple(name for each in FAMILIES if each.tensor for name in each.operations)
"""The operations that take one tensor, and of whose result also the shape is judged."""
SMALL_TENSORS = tuple(name for each in FAMILIES if each.small for name in each.operations)
"""The operations that have small tensors with all that is allowed for them."""


def family_of(case: Case) -> Family:
    """Return the family that has the operation of a case."""
    return BY_OPERATION[operation_of(case)]


@cache
def member_of(operation: str, purpose: str) -> Any:
    """Import the object that an operation's family names in the field ``purpose``, and return it.

    Return None if the field is empty; raise KeyError if no family has the operation.
    """
    name = getattr(BY_OPERATION[operation], purpose)
    return resolve_name(name) if name else None


def judge_of(case: Case) -> Judge:
    """Return the function of a case's family that judges the case for a subject."""
    return member_of(operation_of(case), "judge")  # type: ignore[no-any-return]


def request_of(case: Case) -> type[MethodRequest] | None:
    """Return the kind of request that a backend must answer to be judged; None for a cast."""
    return member_of(operation_of(case), "request")  # type: ignore[no-any-return]


def explain_of(case: Case) -> Explain:
    """Return the function of a case's family that explains a question about the case."""
    return member_of(operation_of(case), "explain")  # type: ignore[no-any-return]


def lines_of(case: Case) -> CaseLines:
    """Return the object that lists, spells and judges the JSON lines of a case."""
    lines: LinesOf = member_of(operation_of(case), "lines")
    return lines(case)


def tensor_of(case: Case) -> ShapedTensor | None:
    """Return the functions of a case's family for a single tensor; None if it has none."""
    return member_of(operation_of(case), "tensor")  # type: ignore[no-any-return]


def tensors_of(case: Case) -> TensorFunctions:
    """Return the functions of a case's family for named tensors, which the family must have."""
    return member_of(operation_of(case), "tensors")  # type: ignore[no-any-return]


def small_of(case: Case) -> SmallTensors:
    """Return the function of a case's family for small tensors, which the family must have."""
    return member_of(operation_of(case), "small")  # type: ignore[no-any-return]


def sentence_of(words: Sequence[str]) -> Sentence | None:
    """Read the words of a question, at least one, such as ``quantize 0.25 by 0.1 as float16``.

    The first word may be the whole sentence.
    Return None if the first word is no operation that has such questions. Raise CastigateError if
    the other words do not complete one.
    """
    parts = [*words[0].split(), *words[1:]]
    verb = "".join(parts[:1])
    read = member_of(verb, "sentence") if verb in BY_OPERATION else None
    return read(parts) if read is not None else None


def several_of(words: Sequence[str]) -> Asks | None:
    """Return the function that reads a question about a chain of casts; None for one case.

    ``words`` are those of the question. Raise CastigateError as ``parts_of`` does.
    """
    from specs.chains import is_chain  # Few commands ask questions.
    from specs.questions import parts_of

    return member_of("chain", "asks") if is_chain(parts_of(words).path) else None
