"""Reads safetensors: the length of a header, the header in JSON, then the elements."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from functools import partial
from math import prod
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictInt, TypeAdapter, ValidationError

from conformance.extras.checkpoints.stored_tensors import (
    LARGEST,
    MOST_DIMENSIONS,
    ByteSpan,
    OtherTensor,
    StoredContents,
    StoredTensor,
    check_spans,
    file_chunks,
    file_size,
)
from specs.errors import CastigateError, quoted
from specs.formats import format_named

LONGEST_HEADER = 100_000_000
"""The most bytes of a header, as the safetensors library has it."""
LENGTH_BYTES = 8
METADATA = "__metadata__"
FLOATS = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E4M3": "float8e4m3fn",
    "F8_E4M3FNUZ": "float8e4m3fnuz",
    "F8_E5M2": "float8e5m2",
    "F8_E5M2FNUZ": "float8e5m2fnuz",
    "F8_E8M0": "float8e8m0",
}
"""The dtypes of safetensors that are checked, by Castigate's names."""
INDEX_SUFFIX = ".safetensors.index.json"

Size = Annotated[StrictInt, Field(ge=0, le=LARGEST)]


class TensorEntry(BaseModel):
    """The entry of a tensor in the header; offsets count from the header's end."""

    model_config = ConfigDict(extra="forbid", strict=True)

    dtype: str
    shape: Annotated[tuple[Size, ...], Field(max_length=MOST_DIMENSIONS, strict=False)]
    data_offsets: Annotated[tuple[Size, Size], Field(strict=False)]


class ShardIndex(BaseModel):
    """The index of a checkpoint in several files: the file of each tensor."""

    model_config = ConfigDict(strict=True)

    weight_map: dict[str, str]


HEADER = TypeAdapter(dict[str, TensorEntry])


def read_safetensors(path: Path) -> StoredContents:
    """Read the header of a file; raise CastigateError if it is malformed."""
    header, begin = _header(path)
    header.pop(METADATA, None)
    try:
        entries = HEADER.validate_python(header)
    except ValidationError as error:
        raise CastigateError(f"{path}: {first_problem(error)}; write the file again") from None
    spans = {
        name: ByteSpan(name, begin + each.data_offsets[0], begin + each.data_offsets[1])
        for name, each in entries.items()
    }
    floats, others = [], []
    for name, each in entries.items():
        span = spans[name]
        if each.dtype not in FLOATS:
            others.append(OtherTensor(name, each.dtype))
            continue
        dtype = format_named(FLOATS[each.dtype])
        wanted = prod(each.shape) * dtype.bits // 8
        if span.end - span.begin != wanted:
            raise CastigateError(
                f"{path}: tensor {quoted(name)} of {each.dtype} needs {wanted:,} bytes for its"
                f" shape, and the header gives it {span.end - span.begin:,}; write the file again"
            )
        chunks = partial(file_chunks, path, span, dtype.storage)
        floats.append(StoredTensor(name, dtype.name, each.shape, chunks))
    check_spans(path, spans.values())
    return StoredContents(tuple(floats), tuple(others))


def _header(path: Path) -> tuple[dict[str, Any], int]:
    """Return the header, and the position of the byte after it."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(LENGTH_BYTES), "little")
        left = file_size(path) - LENGTH_BYTES
        if length > LONGEST_HEADER:
            raise CastigateError(
                f"{path}: its header would have {length:,} bytes, above the {LONGEST_HEADER:,} of"
                " safetensors; give a file of this format"
            )
        if length > left:
            raise CastigateError(
                f"{path}: its header should have {length:,} bytes, and {max(left, 0):,} follow; it"
                " was cut off, so copy or download it again"
            )
        text = file.read(length)
    return read_json(path, text), LENGTH_BYTES + length


def read_json(path: Path, text: bytes) -> dict[str, Any]:
    """Parse a JSON object in a file; raise CastigateError if it is malformed or repeats a key."""

    def distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        [(name, count)] = Counter(name for name, _ in pairs).most_common(1) or [("", 0)]
        if count > 1:
            raise CastigateError(f"{path}: {quoted(name)} stands there twice; write it once")
        return dict(pairs)

    try:
        found = json.loads(text, object_pairs_hook=distinct)
    except (ValueError, RecursionError) as error:
        raise CastigateError(
            f"{path}: its header is no JSON ({error}); give a safetensors file or its index"
        ) from None
    if not isinstance(found, dict):
        raise CastigateError(f"{path}: its header is no JSON object; give a safetensors file")
    return found


def first_problem(error: ValidationError) -> str:
    """Return in words where the first problem of a parsed header is, and what it is."""
    problem = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(quoted(str(part)) for part in problem["loc"])
    return f"{where}: {problem['msg']}"


def read_index(path: Path) -> StoredContents:
    """Read the tensors of all files that an index names, which lie beside it.

    Raise CastigateError if the index or a file is malformed, or if a file lacks a tensor.
    """
    try:
        index = ShardIndex.model_validate(read_json(path, path.read_bytes()))
    except ValidationError as error:
        raise CastigateError(
            f"{path}: {first_problem(error)}; give the index of a safetensors checkpoint"
        ) from None
    files = sorted(set(index.weight_map.values()))
    for each in files:
        if Path(each).name != each or each in ("", ".", "..") or "\\" in each or "\0" in each:
            raise CastigateError(
                f"{path}: {quoted(each)} is not the name of a file beside it; name files of its"
                " folder only"
            )
        if not (path.parent / each).is_file():
            raise CastigateError(
                f"{path} names the file {quoted(each)}, which is not there; download it too"
            )
    shards = {each: read_safetensors(path.parent / each) for each in files}
    known = {(file, name) for file, each in shards.items() for name in each.names}
    for name, file in index.weight_map.items():
        if (file, name) not in known:
            raise CastigateError(
                f"{path}: {quoted(file)} has no tensor {quoted(name)}; download both again"
            )
    return joined(shards.values())


def read_folder(folder: Path) -> StoredContents:
    """Read a folder's index, or all its safetensors files; raise CastigateError if it has none."""
    indices = sorted(folder.glob(f"*{INDEX_SUFFIX}"))
    if len(indices) == 1:
        return read_index(indices[0])
    files = sorted(folder.glob("*.safetensors"))
    if not files or len(indices) > 1:
        what = "several indices" if indices else "no *.safetensors"
        raise CastigateError(f"{folder} is a folder with {what}; name one file of it")
    return joined(map(read_safetensors, files))


def joined(parts: Iterable[StoredContents]) -> StoredContents:
    """Return the contents of several files as one."""
    found = list(parts)
    return StoredContents(
        tuple(each for part in found for each in part.floats),
        tuple(each for part in found for each in part.others),
    )
