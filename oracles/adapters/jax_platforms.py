"""jax's platforms by name, and the libraries of PJRT plug-ins that add others."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from oracles.adapters.refusals import first_line
from oracles.adapters.road_words import parse_road
from oracles.protocol import Unsupported

PLATFORM_ROADS: Mapping[str, str] = {
    "PLATFORM": "a platform of jax or of an installed plug-in, such as cuda or tpu",
    "plugin=PATH,name=NAME": "the library of a PJRT plug-in, as the platform NAME",
    "PLATFORM,VARIANT": "jit, folded or stablehlo on a platform, also behind plugin=PATH,name=NAME",
}

LIBRARIES = "PJRT_NAMES_AND_LIBRARY_PATHS"
"""The environment variable by which jax learns of plug-ins, before it looks for platforms."""

ALIAS = "gpu"
"""Stands for several platforms, of which jax takes the one that is there."""


@dataclass(frozen=True)
class PlatformRoad:
    """A platform on which jax converts, in one of its variants or eagerly.

    ``library`` is the path of the plug-in that adds the platform; empty if jax knows it.
    """

    platform: str
    variant: str | None = None
    library: str = ""

    @property
    def libraries(self) -> dict[str, str]:
        """The environment variable that names the plug-in's library, if there is one."""
        return {LIBRARIES: f"{self.platform}{os.pathsep}{self.library}"} if self.library else {}

    @property
    def environment(self) -> dict[str, str]:
        """All environment variables by which jax finds the platform, and no other."""
        return {"JAX_PLATFORMS": "" if self.platform == ALIAS else self.platform} | self.libraries


def platform_road(words: str, variants: tuple[str, ...]) -> PlatformRoad:
    """Return the road that a variant's words name; raise Unsupported if they name none.

    ``variants`` are those that every platform has.
    """
    road = parse_road("jax", words, ("plugin", "name"))
    kinds = [word for word in road.words if word in variants]
    platforms = [word for word in road.words if word not in variants]
    library = road.options.get("plugin", "")
    if ("plugin" in road.options) != ("name" in road.options):
        raise Unsupported(f"jax:{words} needs both: plugin=PATH,name=NAME")
    platforms += [road.options["name"]] if library else []
    if len(kinds) > 1 or len(platforms) != 1:
        raise Unsupported(
            f"jax:{words} must have one platform, and at most one of {', '.join(variants)}"
        )
    if library and not Path(library).is_file():
        raise Unsupported(f"plugin={library}: there is no such file; give the plug-in's library")
    return PlatformRoad(
        platforms[0], kinds[0] if kinds else None, str(Path(library).resolve()) if library else ""
    )


def device_on(jax: Any, road: PlatformRoad, variants: tuple[str, ...]) -> Any:
    """Return the first device of a platform; raise Unsupported if jax sees none.

    ``variants`` are those that every platform has, which a message lists.
    """
    try:
        return jax.local_devices(backend=road.platform)[0]
    except Exception as error:
        raise Unsupported(_what_is_missing(jax, road, variants, error)) from None


def _what_is_missing(
    jax: Any, road: PlatformRoad, variants: tuple[str, ...], error: Exception
) -> str:
    if road.library:
        return f"plugin={road.library}: {first_line(error)}"
    known = sorted(_known())
    if road.platform not in known:
        offered = ", ".join((*variants, ALIAS))
        return (
            f"jax has no variant `{road.platform}`; its variants are {offered}, "
            f"its platforms {', '.join(known)}"
        )
    where = "https://docs.jax.dev/en/latest/installation.html"
    return (
        f"jax {jax.__version__} sees no {road.platform.upper()} device; ask `jax`, or install a "
        f"jax that is built for the device ({where}): {first_line(error)}"
    )


def _known() -> set[str]:
    """Return the platforms that jax and its installed plug-ins can name, without starting any."""
    from jax._src import xla_bridge  # type: ignore[import-not-found,import-untyped,unused-ignore]

    known: set[str] = xla_bridge.known_platforms()
    return known


def version_of(device: Any, road: PlatformRoad) -> str:
    """Return a platform's name and, in one line, what it says of its version."""
    says = " ".join(device.client.platform_version.split())
    return road.platform if says == road.platform else f"{road.platform}: {says}"
