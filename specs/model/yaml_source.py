"""Reads YAML 1.2 into plain data and remembers on which line each part of it stands."""

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

Location = tuple[str | int, ...]
CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
WHOLE = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,20}")


@dataclass(frozen=True)
class Source:
    """A YAML file as plain data; ``lines`` maps the path of each part to its line."""

    path: Path
    data: Any
    lines: dict[Location, int]

    def line(self, location: Location) -> int:
        """The line of a part, or of the nearest part around it that has one."""
        while location not in self.lines:
            location = location[:-1]
        return self.lines[location]

    def error(self, location: Location, message: str) -> DocumentError:
        """An error about a part of this file."""
        return located(self.path, self.line(location), location, message)


def read_yaml(path: Path) -> Source:
    """Read a file, or say in one line why it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}") from None
    try:
        node = YAML(typ="safe", pure=True).compose(text)
        if node is None:
            raise DocumentError(f"{path}:1: the file is empty; a document begins with `document:`")
        return _Reader(path).source(node)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DocumentError(f"{path}:{line}: not YAML: {error.problem}") from None
    except YAMLError as error:
        raise DocumentError(f"{path}:1: not YAML: {error}") from None
    except RecursionError:
        raise DocumentError(
            f"{path}:1: nested without end; a document is a few levels deep"
        ) from None


class _Reader:
    """Turns YAML nodes into plain data, noting lines on the way."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines: dict[Location, int] = {}

    def source(self, node: Node) -> Source:
        return Source(self.path, self.plain(node, ()), self.lines)

    def plain(self, node: Node, location: Location) -> Any:
        self.lines.setdefault(location, node.start_mark.line + 1)
        match node:
            case MappingNode():
                return self.mapping(node, location)
            case SequenceNode():
                return [
                    self.plain(item, (*location, index)) for index, item in enumerate(node.value)
                ]
            case ScalarNode():
                return self.scalar(node, location)
        raise self.error(node, location, "this kind of YAML node has no place in a document")

    def mapping(self, node: MappingNode, location: Location) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                raise self.error(key_node, location, "a key must be a plain word")
            if str(key_node.tag).endswith(":float"):
                raise self.float_banned(key_node, location)
            key = str(key_node.value)
            if key in result:
                first = self.lines[(*location, key)]
                message = f"`{key}` stands here a second time (first on line {first})"
                raise self.error(key_node, location, f"{message}; give each a name of its own")
            self.lines[(*location, key)] = key_node.start_mark.line + 1
            result[key] = self.plain(value_node, (*location, key))
        return result

    def scalar(self, node: ScalarNode, location: Location) -> str | int | bool | None:
        match str(node.tag).rsplit(":", 1)[-1]:
            case "str":
                return str(node.value)
            case "int" if WHOLE.fullmatch(node.value):
                return int(node.value, 0 if node.value.startswith(("0x", "0o")) else 10)
            case "bool" | "null" if node.value.lower() in CONSTANTS:
                return CONSTANTS[node.value.lower()]
            case "float":
                raise self.float_banned(node, location)
        raise self.error(
            node, location, f"`{node.value}` is not written as documents write; quote it"
        )

    def float_banned(self, node: ScalarNode, location: Location) -> DocumentError:
        text = node.value
        message = f"`{text}` is a YAML float, which loaders read differently; quote it ('{text}')"
        return self.error(node, location, f"{message} or write a quoted hex pattern")

    def error(self, node: Node, location: Location, message: str) -> DocumentError:
        return located(self.path, node.start_mark.line + 1, location, message)


def located(path: Path, line: int, location: Location, message: str) -> DocumentError:
    """An error that names file and line, and the rule where there is one."""
    rule = f"rule {location[1]}: " if len(location) > 1 and location[0] == "rules" else ""
    return DocumentError(f"{path}:{line}: {rule}{message}")


def telling(error: ValidationError) -> ErrorDetails:
    """The complaint that helps most: our own words first, then the deepest."""

    def weight(detail: ErrorDetails) -> tuple[int, int]:
        ranks = {"value_error": 2, "too_short": 2, "too_long": 2, "extra_forbidden": 1}
        return ranks.get(detail["type"], 0), len(detail["loc"])

    return max(error.errors(), key=weight)


def explained(
    source: Source, error: ValidationError, within: Location = ()
) -> tuple[Location, str]:
    """Where the telling complaint is about, from where the validated part begins, and its words."""
    detail = telling(error)
    location = within
    for part in detail["loc"]:
        if (*location, part) in source.lines:
            location = (*location, part)
    message = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "missing":
        message = f"`{detail['loc'][-1]}` is missing"
    if detail["type"] == "extra_forbidden":
        message = f"unknown word `{detail['loc'][-1]}`"
    return location, message
