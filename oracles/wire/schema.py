"""``python -m oracles.wire.schema``: the JSON schema of every header, as docs/ has it."""

from __future__ import annotations

import json

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema

from oracles.wire.headers import PROTOCOL, Answer, Question


def schema() -> str:
    """The schema as text: a header is a question or an answer."""
    either: TypeAdapter[Question | Answer] = TypeAdapter(Question | Answer)
    title = f"Castigate's wire protocol, version {PROTOCOL}: a header"
    words = {"$schema": GenerateJsonSchema.schema_dialect, "title": title, **either.json_schema()}
    return json.dumps(words, indent=2) + "\n"


if __name__ == "__main__":
    print(schema(), end="")
