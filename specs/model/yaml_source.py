"""Reads YAML 1.2 into plain data and records the line of every part, so that errors can name it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from specs.errors import DocumentError
from specs.model.cache import cache_entry

Location = tuple[str | int, ...]
"""The path of keys and indices from the top of a file to one part of it."""
CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
PACKAGES = Path(__file__).parents[2]
"""Castigate's own files, which are parsed once per machine: every process reads some of them."""
INTEGER = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,20}")


@dataclass(frozen=True)
class YamlFile:
    """A YAML file as plain data; ``lines`` maps the location of each part to its line number."""

    path: Path
    data: Any
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """The line of a part, or of the innermost enclosing part whose line is known."""
        while location not in self.lines:
            location = location[:-1]
        return self.lines[location]

    def error(self, location: Location, message: str) -> DocumentError:
        """Create an error about one part of this file."""
        return _error_at(self.path, self.line(location), location, message)


def read_yaml(path: Path) -> YamlFile:
    """Parse a file; raise DocumentError if it is unreadable, empty, or not the YAML we accept."""
    try:
        content = path.read_bytes()
        text = content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}") from None
    if not path.is_relative_to(PACKAGES):
        return _parse(path, text)
    entry = cache_entry("yaml", Path(__file__).read_bytes(), content)
    match entry.read():
        case {"data": data, "lines": list(lines)}:
            return YamlFile(path, data, {tuple(location): line for location, line in lines})
    file = _parse(path, text)
    entry.write({"data": file.data, "lines": list(file.lines.items())})
    return file


def _parse(path: Path, text: str) -> YamlFile:
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        if node is None:
            raise DocumentError(f"{path}:1: the file is empty; a document begins with `document:`")
        parser = _NodeParser(path)
        return YamlFile(path, parser.parse(node, ()), parser.lines)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DocumentError(f"{path}:{line}: not YAML: {error.problem}") from None
    except YAMLError as error:
        raise DocumentError(f"{path}:1: not YAML: {error}") from None
    except RecursionError:
        raise DocumentError(
            f"{path}:1: the file is nested too deeply (an alias may contain itself);"
            " write it with a few levels and without aliases"
        ) from None


class _NodeParser:
    """Turns YAML nodes into plain data and records the line of each."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Location, int] = {}

    def parse(self, node: Node, location: Location) -> Any:
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
            key = str(key_node.value)
            if key in result:
                first = self.lines[(*location, key)]
                message = f"`{key}` is defined twice (first on line {first}); rename one of the two"
                raise self.error(key_node, location, message)
            self.lines[(*location, key)] = key_node.start_mark.line + 1
            result[key] = self.parse(value_node, (*location, key))
        return result

    def scalar(self, node: ScalarNode, location: Location) -> str | int | bool | None:
        match str(node.tag).rsplit(":", 1)[-1]:
            case "str":
                return str(node.value)
            case "int" if INTEGER.fullmatch(node.value):
                return int(node.value, 0 if node.value.startswith(("0x", "0o")) else 10)
            case "bool" | "null" if node.value.lower() in CONSTANTS:
                return CONSTANTS[node.value.lower()]
            case "float":
                raise self.float_error(node, location)
        message = f"`{node.value}` is ambiguous: YAML loaders disagree on its type; quote it"
        raise self.error(node, location, message)

    def float_error(self, node: ScalarNode, location: Location) -> DocumentError:
        text = node.value
        message = f"`{text}` is a YAML float, which loaders read differently; quote it ('{text}')"
        return self.error(node, location, f"{message} or write a quoted hex pattern")

    def error(self, node: Node, location: Location, message: str) -> DocumentError:
        return _error_at(self.path, node.start_mark.line + 1, location, message)


def _error_at(path: Path, line: int, location: Location, message: str) -> DocumentError:
    """Create an error that names file and line, and the rule if the location is inside one."""
    rule = f"rule {location[1]}: " if len(location) > 1 and location[0] == "rules" else ""
    return DocumentError(f"{path}:{line}: {rule}{message}")


def most_helpful_error(error: ValidationError) -> ErrorDetails:
    """The one of pydantic's errors to show: our own validators' first, then the deepest."""

    def rank(detail: ErrorDetails) -> tuple[int, int]:
        ranks = {"value_error": 2, "too_short": 2, "too_long": 2, "extra_forbidden": 1}
        return ranks.get(detail["type"], 0), len(detail["loc"])

    return max(error.errors(), key=rank)


def explain_validation_error(
    file: YamlFile, error: ValidationError, start: Location = ()
) -> tuple[Location, str]:
    """The location and message of pydantic's most helpful error.

    ``start`` is the location of the part that was validated, from the top of the file.
    """
    detail = most_helpful_error(error)
    location = start
    for key in detail["loc"]:
        if (*location, key) in file.lines:
            location = (*location, key)
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        message = f"`{detail['loc'][-1]}` is missing"
    if detail["type"] == "extra_forbidden":
        message = f"unknown key `{detail['loc'][-1]}`"
    return location, message
