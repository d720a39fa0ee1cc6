"""Reads YAML 1.2 into plain data and records the line of every part, so that errors can name it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from specs.errors import DocumentError
from specs.model.cache import CacheEntry, cache_entry
from specs.plain_text import UNSAFE, plain_line

Location = tuple[str | int, ...]
"""The path of keys and indices from the top of a file to one part of it."""
CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
PACKAGES = Path(__file__).parents[2]
"""The folder of Castigate's packages: a file in it is parsed once per machine, and then cached."""
MAX_BYTES, MAX_NODES, MAX_DEPTH = 1 << 21, 100_000, 50
"""Limits of a file. A node is a key, a value, a list or a mapping, and counts each time that an
alias repeats it; the largest file that ships has 34 kB and 2,600 nodes."""
LONGEST_QUOTE = 80
"""The most characters of a key or value that an error quotes."""
TOO_MANY = (
    f"the file has more than {MAX_NODES:,} keys and values, counting what aliases repeat; "
    "split it, or write it without aliases"
)
TOO_DEEP = (
    f"the file is nested more than {MAX_DEPTH} levels deep (an alias may contain itself); "
    "write it with a few levels and without aliases"
)
INTEGER = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,20}")


@dataclass(frozen=True)
class YamlFile:
    """A YAML file as plain data; ``lines`` maps the location of each part to its line number."""

    path: Path
    data: Any
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """Return the line of a part, or of the innermost enclosing part whose line is known."""
        while location not in self.lines:
            location = location[:-1]
        return self.lines[location]

    def error(self, location: Location, message: str) -> DocumentError:
        """Return an error about one part of this file, with its path and line in the message."""
        return _error_at(self.path, self.line(location), location, message)


def read_yaml(path: Path) -> YamlFile:
    """Parse a file; raise DocumentError if it is unreadable, empty, or not the YAML we accept.

    A file of Castigate's own packages may come from the cache.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DocumentError(
                f"{path}: the file has more than {MAX_BYTES >> 20} MiB; split it, or remove what "
                "is not needed"
            )
        text = content.decode()
    except (OSError, ValueError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}") from None
    if not path.is_relative_to(PACKAGES):
        return parse_yaml(path, text)
    entry = _cache_entry(content)
    match entry.read():
        case {"data": data, "lines": list(lines)}:
            return YamlFile(path, data, {tuple(location): line for location, line in lines})
    parsed = parse_yaml(path, text)
    entry.write({"data": parsed.data, "lines": list(parsed.lines.items())})
    return parsed


def check_cached(path: Path) -> None:
    """Raise DocumentError if the cache holds other content for a file than the file has."""
    if read_yaml(path) != parse_yaml(path, path.read_text("utf-8")):
        entry = _cache_entry(path.read_bytes())
        raise DocumentError(
            f"{entry.path}: it is not what {path.name} says; remove this file, and find out which "
            "program wrote it"
        )


def _cache_entry(content: bytes) -> CacheEntry:
    return cache_entry("yaml", Path(__file__).read_bytes(), content)


def parse_yaml(path: Path, text: str) -> YamlFile:
    """Parse a YAML text; raise DocumentError if it is empty or not the YAML we accept.

    The error names ``path`` and the line.
    """
    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.Composer = _LimitedComposer
        node = yaml.compose(text)
        if node is None:
            raise DocumentError(f"{path}:1: the file is empty; a document begins with `document:`")
        parser = _NodeParser(path)
        return YamlFile(path, parser.parse(node, ()), parser.lines)
    except _LimitError as error:
        raise DocumentError(f"{path}:{error.problem_mark.line + 1}: {error.problem}") from None
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DocumentError(f"{path}:{line}: not YAML: {error.problem}") from None
    except (YAMLError, ValueError, OverflowError) as error:
        # The last two come from an escape of a character that does not exist.
        raise DocumentError(f"{path}:1: not YAML: {error}") from None


class _LimitError(ComposerError):
    """Raised for valid YAML that exceeds a limit or defines an anchor twice."""


class _LimitedComposer(Composer):
    """Builds nodes; raises _LimitError if they are too many or too deep, or two share an anchor."""

    nodes = levels = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        event = self.parser.peek_event()
        self.nodes += 1
        self.levels += 1
        problem = self._problem(event)
        if problem:
            raise _LimitError(None, None, problem, event.start_mark)
        node = super().compose_node(parent, index)
        self.levels -= 1
        return node

    def _problem(self, event: Any) -> str:
        if self.nodes > MAX_NODES:
            return TOO_MANY
        if self.levels > MAX_DEPTH:
            return TOO_DEEP
        if not isinstance(event, AliasEvent) and event.anchor in self.anchors:
            line = self.anchors[event.anchor].start_mark.line + 1
            return f"anchor {_quote(event.anchor)} is on line {line} already; rename one of the two"
        return ""


class _NodeParser:
    """Turns YAML nodes into plain data and records the line of each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Location, int] = {}
        self.nodes = 0

    def parse(self, node: Node, location: Location) -> Any:
        # An alias may repeat nodes many times over, or contain itself.
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise self.error(node, (), TOO_MANY)
        if len(location) > MAX_DEPTH:
            raise self.error(node, (), TOO_DEEP)
        self.lines.setdefault(location, node.start_mark.line + 1)
        match node:
            case MappingNode():
                return self.mapping(node, location)
            case SequenceNode():
                return [
                    self.parse(item, (*location, index)) for index, item in enumerate(node.value)
                ]
            case ScalarNode():
                return self.scalar(node, location)
        raise self.error(node, location, "this kind of YAML node is not supported")

    def mapping(self, node: MappingNode, location: Location) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise self.error(key_node, location, "a key must be a plain word")
            if str(key_node.tag).endswith(":float"):
                raise self.float_error(key_node, location)
            key = self.text(key_node, location)
            if key in result:
                first = self.lines[(*location, key)]
                message = (
                    f"{_quote(key)} is defined twice (first on line {first}); rename one of the two"
                )
                raise self.error(key_node, location, message)
            self.lines[(*location, key)] = key_node.start_mark.line + 1
            result[key] = self.parse(value_node, (*location, key))
        return result

    def scalar(self, node: ScalarNode, location: Location) -> str | int | bool | None:
        match str(node.tag).rsplit(":", 1)[-1]:
            case "str":
                return self.text(node, location)
            case "int" if INTEGER.fullmatch(node.value):
                return int(node.value, 0 if node.value.startswith(("0x", "0o")) else 10)
            case "bool" | "null" if node.value.lower() in CONSTANTS:
                return CONSTANTS[node.value.lower()]
            case "float":
                raise self.float_error(node, location)
        message = f"{_quote(node.value)} is ambiguous: YAML loaders disagree on its type; quote it"
        raise self.error(node, location, message)

    def text(self, node: ScalarNode, location: Location) -> str:
        """Return a scalar as text; raise DocumentError for a character that cannot be shown."""
        text = str(node.value)
        if found := UNSAFE.search(text):
            message = f"{_quote(text)} holds the character U+{ord(found[0]):04X}; remove it"
            raise self.error(node, location, message)
        return text

    def float_error(self, node: ScalarNode, location: Location) -> DocumentError:
        text = plain_line(node.value, LONGEST_QUOTE)
        message = f"`{text}` is a YAML float, which loaders read differently; quote it ('{text}')"
        return self.error(node, location, f"{message} or write a quoted hex pattern")

    def error(self, node: Node, location: Location, message: str) -> DocumentError:
        return _error_at(self.path, node.start_mark.line + 1, location, message)


def _quote(text: str) -> str:
    return f"`{plain_line(text, LONGEST_QUOTE)}`"


def _error_at(path: Path, line: int, location: Location, message: str) -> DocumentError:
    """Return an error that names file and line, and the rule if the location is inside one."""
    rule = ""
    if len(location) > 1 and location[0] == "rules":
        rule = f"rule {plain_line(str(location[1]), LONGEST_QUOTE)}: "
    return DocumentError(f"{path}:{line}: {rule}{message}")


def most_helpful_error(error: ValidationError) -> ErrorDetails:
    """Return the one of pydantic's errors to show.

    Errors of our own validators and of lengths come first, then unknown keys, then all others;
    among equals, the deepest in the file.
    """

    def rank(detail: ErrorDetails) -> tuple[int, int]:
        ranks = {"value_error": 2, "too_short": 2, "too_long": 2, "extra_forbidden": 1}
        return ranks.get(detail["type"], 0), len(detail["loc"])

    return max(error.errors(), key=rank)


def explain_validation_error(
    file: YamlFile, error: ValidationError, start: Location = ()
) -> tuple[Location, str]:
    """Return the location and the message of pydantic's most helpful error.

    ``start`` is the location of the part that was validated, from the top of the file.
    """
    detail = most_helpful_error(error)
    location = start
    for key in detail["loc"]:
        if (*location, key) in file.lines:
            location = (*location, key)
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        message = f"{_quote(str(detail['loc'][-1]))} is missing"
    if detail["type"] == "extra_forbidden":
        message = f"unknown key {_quote(str(detail['loc'][-1]))}"
    return location, message


class StrictModel(BaseModel):
    """A model that refuses unknown keys and values of another type, and cannot be changed.

    A text is no number, a boolean no integer, and an integer no boolean.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
