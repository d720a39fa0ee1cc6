"""Parses what follows the colon in a backend's name: words and ``KEY=VALUE``, between commas.

A backend has variants, which its adapter lists, and open roads, whose words a user brings: the name
of a device, or the path of a plug-in. One grammar serves all of them, so that a vendor who has seen
``ort:ep=./lib.so,name=Npu`` can write ``jax:plugin=./lib.so``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from oracles.protocol import Unsupported
from specs.errors import did_you_mean

KEY = re.compile(r"[A-Za-z_][\w.-]*")
"""Matches the key of an option."""


@dataclass(frozen=True)
class RoadWords:
    """The words of a road in the order in which they stand, and its options."""

    words: tuple[str, ...]
    options: Mapping[str, str]


def parse_road(backend: str, variant: str, keys: Collection[str] | None = None) -> RoadWords:
    """Parse what follows a backend's colon; raise Unsupported if it cannot be read.

    ``keys`` are the options that the backend knows; None if it passes all of them on. A value may
    have ``=`` in it, but no comma.

    >>> parse_road("ort", "ep=./lib.so,name=Npu")
    RoadWords(words=(), options={'ep': './lib.so', 'name': 'Npu'})
    """
    words: list[str] = []
    options: dict[str, str] = {}
    for part in variant.split(","):
        key, equals, value = part.strip().partition("=")
        if not equals:
            words.append(key)
        elif not KEY.fullmatch(key) or not value:
            raise Unsupported(f"`{part}` of {backend}:{variant} is not KEY=VALUE")
        elif key in options:
            raise Unsupported(f"{backend}:{variant} has `{key}` twice")
        elif keys is not None and key not in keys:
            takes = f"its options are {', '.join(keys)}" if keys else "it takes none"
            known = did_you_mean(key, keys).strip() or takes
            raise Unsupported(f"{backend} has no option `{key}`; {known}")
        else:
            options[key] = value
    if not all(words):
        raise Unsupported(f"{backend}:{variant} has an empty word; separate words by one comma")
    return RoadWords(tuple(words), options)
