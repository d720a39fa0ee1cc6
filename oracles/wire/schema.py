"""``python -m oracles.wire.schema``: the JSON schema of every header, as docs/ has it."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from oracles.isolation.frames import MOST_ELEMENTS, MOST_RANK, FrameError
from oracles.isolation.remote_errors import LONGEST

PROTOCOL: Literal[1] = 1
LONGEST_NAME = 100
LONGEST_FAULT = 120

Operation = Literal["cast", "sweep", "bitcast"]
Dependence = Literal["document", "version", "mode"]
Number = Annotated[int, Field(ge=1, description="Of the question; its answer repeats it.")]
Count = Annotated[int, Field(ge=0, le=MOST_ELEMENTS)]
Shape = Annotated[list[Count], Field(max_length=MOST_RANK)]
Word = Annotated[str, Field(pattern="^[ -~]+$", max_length=LONGEST_NAME)]
Text = Annotated[str, Field(max_length=LONGEST)]


class Header(BaseModel):
    """A JSON object with these members and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CaseWords(Header):
    """What is asked for; ``mode`` has the parameters that matter for the pair, as texts."""

    id: str
    document: str
    version: str
    source: str
    target: str
    mode: dict[str, str]


class Offer(Header):
    """Memory that both sides may map: a file descriptor of the program's, of so many bytes."""

    descriptor: Annotated[int, Field(ge=3)]
    bytes: Annotated[int, Field(ge=1)]


class Room(Header):
    """The part of the shared memory that this question's answer may be written to."""

    offset: Annotated[int, Field(ge=0)]
    bytes: Annotated[int, Field(ge=1)]


class AskHello(Header):
    """The first question: who is there, and what it can do."""

    ask: Literal["hello"] = "hello"
    number: Number
    protocol: Literal[1] = PROTOCOL
    castigate: Word
    memory: Offer | None = None


class AskCast(Header):
    """Cast these elements; the payload has them."""

    ask: Literal["cast"] = "cast"
    number: Number
    case: CaseWords
    shape: Shape


class AskSweep(Header):
    """Cast so many consecutive patterns, from the first on; there is no payload."""

    ask: Literal["sweep"] = "sweep"
    number: Number
    case: CaseWords
    first: Annotated[int, Field(ge=0, lt=1 << 32)]
    count: Annotated[int, Field(ge=1, le=1 << 32)]
    memory: Room | None = None


class AskBitcast(Header):
    """Read the bits of these elements as the target; the payload has them."""

    ask: Literal["bitcast"] = "bitcast"
    number: Number
    case: CaseWords
    shape: Shape


class AskBye(Header):
    """The last question: nothing more comes, and the program is to end."""

    ask: Literal["bye"] = "bye"
    number: Number


class Hello(Header):
    """Who is there; without ``claims`` it means to implement every document.

    A claim is a document's name, or ``name:version`` for one version of it.

    Cases that differ in nothing that ``depends_on`` names get the same answers to the same bits.
    """

    answer: Literal["hello"]
    number: Number
    protocol: int
    name: Word
    version: Word
    dtypes: list[str]
    operations: list[Operation]
    claims: list[str] | None = None
    depends_on: list[Dependence] = ["document", "version", "mode"]
    memory: Annotated[bool, Field(description="Whether the memory offered is used.")] = False


class Values(Header):
    """The answer's elements: in the payload, or in the memory that the question names."""

    answer: Literal["values"]
    number: Number
    shape: Shape
    in_memory: bool = False


class Unsupported(Header):
    """The program does not offer this; it is no pass and no failure."""

    answer: Literal["unsupported"]
    number: Number
    reason: Text


class Error(Header):
    """The program refuses, or cannot; right where the document asks for a refusal."""

    answer: Literal["error"]
    number: Number
    text: Text
    kind: Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]{0,99}$")] = "Error"


class Bye(Header):
    """The last answer."""

    answer: Literal["bye"]
    number: Number


Question = Annotated[
    AskHello | AskCast | AskSweep | AskBitcast | AskBye, Field(discriminator="ask")
]
Answer = Annotated[Hello | Values | Unsupported | Error | Bye, Field(discriminator="answer")]

QUESTION: TypeAdapter[Question] = TypeAdapter(Question)
ANSWER: TypeAdapter[Answer] = TypeAdapter(Answer)


def answer_of(header: dict[str, Any]) -> Answer:
    """The answer that a header is; a ``FrameError`` where it is none."""
    try:
        return ANSWER.validate_python(header)
    except ValidationError as error:
        # Only the place and our own words: what the program wrote may be of any size.
        [first, *_] = error.errors(include_url=False, include_context=False, include_input=False)
        place = ".".join(map(str, first["loc"])) or "header"
        said = f"{place}: {first['type']}"
        shown = said.encode("ascii", "backslashreplace").decode()
        raise FrameError(f"not an answer of the protocol ({shown[:LONGEST_FAULT]})") from None


def in_one_line(text: str) -> str:
    """A program's words without line ends and without what could steer a terminal."""
    letters = (" " if letter.isspace() else letter for letter in text)
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in letters
    )


def words_of(question: Header) -> dict[str, Any]:
    """A question as JSON."""
    return question.model_dump(exclude_none=True)


def schema() -> str:
    """The schema as text: a header is a question or an answer."""
    either: TypeAdapter[Question | Answer] = TypeAdapter(Question | Answer)
    title = f"Castigate's wire protocol, version {PROTOCOL}: a header"
    words = {"$schema": GenerateJsonSchema.schema_dialect, "title": title, **either.json_schema()}
    return json.dumps(words, indent=2) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
