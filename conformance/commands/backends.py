"""What a backend is, and whether it is here: asked in a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Any

from oracles.isolation.launch_config import Home
from oracles.isolation.loading import close, load_isolated
from oracles.registry import BUILTINS
from oracles.smoke_check import moved
from specs.errors import CastigateError

OPERATIONS = ("cast", "bitcast", "call")
WIDTH = 96


@dataclass(frozen=True)
class Seen:
    """A backend as it was found; one that cannot be had has a reason and no version."""

    name: str
    variants: tuple[str, ...]
    version: str | None = None
    reason: str | None = None
    claims: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    smoke: tuple[tuple[str, str], ...] = ()

    @property
    def words(self) -> dict[str, Any]:
        """The same as JSON."""
        return asdict(self) | {"smoke": dict(self.smoke)}

    def lines(self) -> Iterator[str]:
        """The same for people."""
        if self.version is None:
            yield f"{self.name}: {self.reason}"
            return
        yield f"{self.name} {self.version}"
        faults = "; ".join(f"{dtype}: {fault}" for dtype, fault in self.smoke)
        rows = {
            "variants": ", ".join(self.variants),
            "claims": ", ".join(self.claims) or "nothing: it is only compared",
            "operations": ", ".join(self.operations),
            "dtypes": ", ".join(self.dtypes) or "as it says case by case",
            "smoke": faults or "bits go in and out unchanged",
        }
        for title, text in rows.items():
            for place, line in enumerate(wrap(text, WIDTH - 14, break_on_hyphens=False)):
                yield f"  {'' if place else title:<10}  {line}"


def look(name: str, home: Home) -> Seen:
    """Load a backend and ask what it is; whatever goes wrong is what was seen."""
    variants = BUILTINS[name].variants if name in BUILTINS else ()
    try:
        backend = load_isolated(name, home)
    except CastigateError as error:
        return Seen(
            name, variants, reason=str(error).removeprefix(f"backend `{name}`").lstrip(": ")
        )
    try:
        offered = tuple(moved(backend))
        return Seen(
            name,
            variants,
            backend.version,
            claims=tuple(map(str, backend.claimed)),
            operations=tuple(each for each in OPERATIONS if hasattr(backend.oracle, each)),
            dtypes=tuple(dtype for dtype, _ in offered) or getattr(backend.oracle, "dtypes", ()),
            smoke=tuple((dtype, fault) for dtype, fault in offered if fault),
        )
    finally:
        close(backend)
