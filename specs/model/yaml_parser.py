"""Parses YAML 1.2 to plain data, and records the line of every part, so that errors can name it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.composer import Composer, ComposerError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import AliasEvent
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from specs.errors import LONGEST_QUOTE, DocumentError, Location, error_at, quoted
from specs.plain_text import UNSAFE, plain_line

CONSTANTS = {"true": True, "false": False, "null": None, "~": None, "": None}
MAX_NODES, MAX_DEPTH = 100_000, 50
"""Limits of a file. A node is a key, a value, a list or a mapping, and counts each time that an
alias repeats it; the largest file that ships has 2,600."""
TOO_MANY = (
    f"the file has more than {MAX_NODES:,} keys and values, counting what aliases repeat; "
    "split it, or write it without aliases"
)
TOO_DEEP = (
    f"the file is nested more than {MAX_DEPTH} levels deep (an alias may contain itself); "
    "write it with a few levels and without aliases"
)
INTEGER = re.compile(r"[-+]?[0-9]{1,18}|0x[0-9a-fA-F]{1,16}|0o[0-7]{1,20}")


def parse(path: Path, text: str) -> tuple[Any, dict[Location, int]]:
    """Return what a YAML text says, and the line of each part of it.

    Raise DocumentError, which names ``path`` and the line, if the text is empty or not the YAML
    that we accept.
    """
    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.Composer = _LimitedComposer
        node = yaml.compose(text)
        if node is None:
            raise DocumentError(f"{path}:1: the file is empty; a document begins with `document:`")
        parser = _NodeParser(path)
        return parser.parse(node, ()), parser.lines
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
            return f"anchor {quoted(event.anchor)} is on line {line} already; rename one of the two"
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
                    f"{quoted(key)} is defined twice (first on line {first}); rename one of the two"
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
        message = f"{quoted(node.value)} is ambiguous: YAML loaders disagree on its type; quote it"
        raise self.error(node, location, message)

    def text(self, node: ScalarNode, location: Location) -> str:
        """Return a scalar as text; raise DocumentError for a character that cannot be shown."""
        text = str(node.value)
        if found := UNSAFE.search(text):
            message = f"{quoted(text)} holds the character U+{ord(found[0]):04X}; remove it"
            raise self.error(node, location, message)
        return text

    def float_error(self, node: ScalarNode, location: Location) -> DocumentError:
        text = plain_line(node.value, LONGEST_QUOTE)
        message = f"`{text}` is a YAML float, which loaders read differently; quote it ('{text}')"
        return self.error(node, location, f"{message} or write a quoted hex pattern")

    def error(self, node: Node, location: Location, message: str) -> DocumentError:
        return error_at(self.path, node.start_mark.line + 1, location, message)
