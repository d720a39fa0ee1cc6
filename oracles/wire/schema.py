"""The headers of the wire protocol as models, which check what a program sends.

``python -m oracles.wire.schema`` prints their JSON schema for docs/protocol.schema.json.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from oracles.backend.frames import MAX_ELEMENTS, MAX_RANK, FrameError
from oracles.backend.remote_errors import MAX_TEXT
from specs.model.strict_model import StrictModel
from specs.plain_text import plain_line

PROTOCOL: Literal[1] = 1
MAX_NAME = 100
MAX_LISTED = 1000
"""The most dtypes, operations, claims or dependences that a program lists."""
MAX_PROBLEM = 200
"""The most characters of the text that says what is wrong with a header."""

WireOperation = Literal["cast", "sweep", "bitcast", "quantize"]
Dependence = Literal["document", "version", "mode"]
QuestionNumber = Annotated[
    int, Field(ge=1, description="The number of the question; its answer repeats it.")
]
Count = Annotated[int, Field(ge=0, le=MAX_ELEMENTS)]
Dimensions = Annotated[list[Count], Field(max_length=MAX_RANK)]
PrintableName = Annotated[str, Field(pattern="^[ -~]+$", max_length=MAX_NAME)]
KIND = "^[A-Za-z_][A-Za-z0-9_]{0,99}$"


def _cut(text: Any) -> Any:
    return text[:MAX_TEXT] if isinstance(text, str) else text


def _plain_kind(kind: Any) -> Any:
    return "Error" if isinstance(kind, str) and not re.fullmatch(KIND, kind) else kind


CutText = Annotated[str, Field(max_length=MAX_TEXT), BeforeValidator(_cut)]
Each = TypeVar("Each", bound=str)


def _once(words: list[Each]) -> list[Each]:
    if len(set(words)) < len(words):
        raise ValueError("a word is listed twice")
    return words


Listed = Annotated[
    list[Each],
    Field(max_length=MAX_LISTED, json_schema_extra={"uniqueItems": True}),
    AfterValidator(_once),
]


class Header(StrictModel):
    """A JSON object with the members that a subclass declares, and no others."""


class WireCase(Header):
    """A case; ``mode`` has the parameters that affect this pair of dtypes, as texts."""

    id: str
    document: str
    version: str
    source: str
    target: str
    mode: dict[str, str]


class MemoryOffer(Header):
    """Memory that both sides may map: an inherited file descriptor and the size in bytes."""

    descriptor: Annotated[int, Field(ge=3)]
    bytes: Annotated[int, Field(ge=1)]


class MemorySlot(Header):
    """The part of the shared memory to which the program may write the answer to a sweep."""

    offset: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=1)]


class AskHello(Header):
    """The first question: asks for the program's name and what it offers, and may offer memory."""

    ask: Literal["hello"] = "hello"
    number: QuestionNumber
    protocol: Literal[1] = PROTOCOL
    castigate: PrintableName
    memory: MemoryOffer | None = None


class AskCast(Header):
    """Cast the elements in the payload."""

    ask: Literal["cast"] = "cast"
    number: QuestionNumber
    case: WireCase
    shape: Dimensions


class AskSweep(Header):
    """Cast consecutive patterns, beginning with ``first``; there is no payload."""

    ask: Literal["sweep"] = "sweep"
    number: QuestionNumber
    case: WireCase
    first: Annotated[int, Field(ge=0, lt=1 << 32)]
    count: Annotated[int, Field(ge=1, le=1 << 32)]
    memory: MemorySlot | None = None


class AskBitcast(Header):
    """Reinterpret the elements in the payload as the target."""

    ask: Literal["bitcast"] = "bitcast"
    number: QuestionNumber
    case: WireCase
    shape: Dimensions


class NamedTensor(Header):
    """The name, dtype and shape by which a header describes one tensor of the payload."""

    name: PrintableName
    dtype: str
    shape: Dimensions


class NamedResult(Header):
    """A tensor that the answer must have, with the dtype that it must be of."""

    name: PrintableName
    dtype: str


class AskQuantize(Header):
    """Do the case's operation to the tensors, which are in the payload one after another."""

    ask: Literal["quantize"] = "quantize"
    number: QuestionNumber
    case: WireCase
    tensors: list[NamedTensor]
    results: list[NamedResult]


MAX_GROWTH = 64
"""How many elements of the narrowest format fit into one of the widest."""
ELEMENT_REQUESTS: Mapping[str, tuple[type[AskCast | AskBitcast], int]] = {
    "cast": (AskCast, 1),
    "bitcast": (AskBitcast, MAX_GROWTH),
}
"""By operation: the header of a request with elements, and the most answers per element."""
TENSOR_REQUESTS: Mapping[str, type[AskQuantize]] = {"quantize": AskQuantize}
"""By operation: the header of a request with named tensors."""


class AskBye(Header):
    """The last question: the program answers and exits."""

    ask: Literal["bye"] = "bye"
    number: QuestionNumber


class Hello(Header):
    """The program's name and what it offers; without ``claims`` it claims every document.

    A claim is a document's name, or ``name:version`` for one version of it.

    Cases that agree in both dtypes and in everything that ``depends_on`` names get the same answers
    to the same bits.
    """

    answer: Literal["hello"]
    number: QuestionNumber
    protocol: int
    name: PrintableName
    version: PrintableName
    dtypes: Listed[str]
    operations: Listed[WireOperation]
    claims: Listed[str] | None = None
    depends_on: Listed[Dependence] = Field(["document", "version", "mode"])
    memory: Annotated[
        bool, Field(description="Whether the program uses the memory that was offered.")
    ] = False


class Values(Header):
    """The answer to ``cast``, ``bitcast`` or ``sweep``: its elements are in the payload.

    Those of a sweep may be in the memory that the question names instead.
    """

    answer: Literal["values"]
    number: QuestionNumber
    shape: Dimensions
    in_memory: bool = False


class ResultShape(Header):
    """A tensor in the payload of the answer; the question names its dtype."""

    name: PrintableName
    shape: Dimensions


class Tensors(Header):
    """The answer to ``quantize``: its tensors are in the payload, one after another."""

    answer: Literal["tensors"]
    number: QuestionNumber
    tensors: list[ResultShape]


class Unsupported(Header):
    """The program does not offer what the question needs, which is neither a pass nor a failure."""

    answer: Literal["unsupported"]
    number: QuestionNumber
    reason: CutText


class Error(Header):
    """The program refuses or fails, which is right where the document asks for a refusal."""

    answer: Literal["error"]
    number: QuestionNumber
    text: CutText
    kind: Annotated[str, Field(pattern=KIND), BeforeValidator(_plain_kind)] = "Error"


class Bye(Header):
    """The last answer, after which the program exits."""

    answer: Literal["bye"]
    number: QuestionNumber


QuestionHeader = Annotated[
    AskHello | AskCast | AskSweep | AskBitcast | AskQuantize | AskBye, Field(discriminator="ask")
]
AnswerHeader = Annotated[
    Hello | Values | Tensors | Unsupported | Error | Bye, Field(discriminator="answer")
]

QUESTION: TypeAdapter[QuestionHeader] = TypeAdapter(QuestionHeader)
ANSWER: TypeAdapter[AnswerHeader] = TypeAdapter(AnswerHeader)
PROBLEMS = {
    "missing": "this member is missing",
    "extra_forbidden": "the protocol has no such member",
    "union_tag_not_found": "the member `answer` is missing",
}
"""By type of a pydantic error: the message that replaces pydantic's, which speaks of models."""


def parse_answer(header: dict[str, Any]) -> AnswerHeader:
    """Parse the header of an answer; raise FrameError if it is malformed."""
    try:
        return ANSWER.validate_python(header)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_context=False, include_input=False)
        place = ".".join(map(str, first["loc"])) or "header"
        # The message may quote a value, which may be of any size.
        problem = f"{place}: {PROBLEMS.get(first['type'], first['msg'])}"
        problem = plain_line(problem, MAX_PROBLEM)
        raise FrameError(f"not an answer of the protocol ({problem})") from None


def encode_request(request: Header) -> dict[str, Any]:
    """Return a request's header as a dictionary, without the members that are None."""
    return request.model_dump(exclude_none=True)


def json_schema() -> str:
    """Return the JSON schema of all headers, questions and answers, as text."""
    either: TypeAdapter[QuestionHeader | AnswerHeader] = TypeAdapter(QuestionHeader | AnswerHeader)
    title = f"Castigate's wire protocol, version {PROTOCOL}: a header"
    schema = {"$schema": GenerateJsonSchema.schema_dialect, "title": title, **either.json_schema()}
    return json.dumps(schema, indent=2) + "\n"


if __name__ == "__main__":
    print(json_schema(), end="")
