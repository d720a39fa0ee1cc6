"""Reads YAML 1.2 into plain data and remembers on which line each part of it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from specs.errors import DocumentError

Location = tuple[str | int, ...]
CONSTANTS = {"true": True, "false": False, "null": None}
WHOLE = re.compile(r"[-+]?[0-9]+|0x[0-9a-fA-F]+|0o[0-7]+")


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
        """An error that names file and line, and the rule where there is one."""
        rule = f"rule {location[1]}: " if len(location) > 1 and location[0] == "rules" else ""
        return DocumentError(f"{self.path}:{self.line(location)}: {rule}{message}")


def read_yaml(path: Path) -> Source:
    """Read a file, or say in one line why it cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentError(f"{path}: cannot be read: {error}") from None
    try:
        node = YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise DocumentError(f"{path}:{line}: not YAML: {error.problem}") from None
    except YAMLError as error:
        raise DocumentError(f"{path}:1: not YAML: {error}") from None
    if node is None:
        raise DocumentError(f"{path}:1: the file is empty; a document begins with `document: NAME`")
    lines: dict[Location, int] = {}
    return Source(path, _plain(path, node, (), lines), lines)


def _plain(path: Path, node: Node, location: Location, lines: dict[Location, int]) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(location, line)
    match node:
        case MappingNode():
            return _mapping(path, node, location, lines)
        case SequenceNode():
            return [
                _plain(path, item, (*location, index), lines)
                for index, item in enumerate(node.value)
            ]
        case ScalarNode():
            return _scalar(path, node, line)
    raise DocumentError(f"{path}:{line}: this kind of YAML node has no place in a document")


def _mapping(
    path: Path, node: MappingNode, location: Location, lines: dict[Location, int]
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, ScalarNode):
            raise DocumentError(f"{path}:{line}: a key must be a plain word")
        if str(key_node.tag).endswith(":float"):
            raise _float_banned(path, line, key_node.value)
        key = str(key_node.value)
        if key in result:
            raise DocumentError(
                f"{path}:{line}: `{key}` stands here a second time"
                f" (first on line {lines[(*location, key)]}); give each a name of its own"
            )
        lines[(*location, key)] = line
        result[key] = _plain(path, value_node, (*location, key), lines)
    return result


def _scalar(path: Path, node: ScalarNode, line: int) -> str | int | bool | None:
    kind = str(node.tag).rsplit(":", 1)[-1]
    match kind:
        case "str":
            return str(node.value)
        case "int" if WHOLE.fullmatch(node.value):
            return int(node.value, 0) if node.value.startswith(("0x", "0o")) else int(node.value)
        case "bool" | "null":
            return CONSTANTS.get(node.value.lower())
        case "float":
            raise _float_banned(path, line, node.value)
    raise DocumentError(f"{path}:{line}: `{node.value}` has a tag that documents do not use")


def _float_banned(path: Path, line: int, text: str) -> DocumentError:
    return DocumentError(
        f"{path}:{line}: `{text}` is a YAML float, which loaders read differently;"
        f" quote it ('{text}') or write the bit pattern as a quoted hex string"
    )
