"""Reads a YAML file as plain data with the line of each part; keeps our own files in a cache.

A process that reads only cached files imports no parser, which would take it a third of its start.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specs.errors import DocumentError, Location, error_at, require_regular
from specs.model.cache import CacheEntry, cache_entry

PACKAGES = Path(__file__).parents[2]
"""The folder of Castigate's packages: a file in it is parsed once per machine, and then cached."""
MAX_BYTES = 1 << 21
"""The most bytes of a file; the largest that ships has 34 kB."""


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
        return error_at(self.path, self.line(location), location, message)


def read_yaml(path: Path) -> YamlFile:
    """Parse a file; raise DocumentError if it is unreadable, empty, or not the YAML we accept.

    Raise it for more than ``MAX_BYTES`` too, but CastigateError for a pipe or a device. A file of
    Castigate's own packages may come from the cache.
    """
    try:
        require_regular(path)
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise DocumentError(
                f"{path}: the file has more than {MAX_BYTES >> 20} MiB; split it, or remove what "
                "is not needed"
            )
        text = content.decode()
    except FileNotFoundError:
        raise DocumentError(f"{path}: there is no such file") from None
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


def parse_yaml(path: Path, text: str) -> YamlFile:
    """Parse a YAML text; raise DocumentError if it is empty or not the YAML we accept.

    The error names ``path`` and the line.
    """
    from specs.model.yaml_parser import parse  # Not to be imported for a cached file.

    return YamlFile(path, *parse(path, text))


def check_cached(path: Path) -> None:
    """Raise DocumentError if the cache holds other content for a file than the file has."""
    if read_yaml(path) != parse_yaml(path, path.read_text("utf-8")):
        entry = _cache_entry(path.read_bytes())
        raise DocumentError(
            f"{entry.path}: it is not what {path.name} says; remove this file, and find out which "
            "program wrote it"
        )


def _cache_entry(content: bytes) -> CacheEntry:
    return cache_entry("yaml", Path(__file__).with_name("yaml_parser.py").read_bytes(), content)
