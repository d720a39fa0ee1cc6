"""``castigate backends``: which backends are installed, and what each supports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from textwrap import wrap
from typing import Annotated, Any

import typer

from conformance.commands.options import PythonOption, TimeoutOption
from oracles.backend.backend_supervisor import DEFAULT_TIMEOUT, LaunchConfig
from oracles.backend.isolated_oracle import IsolatedOracle
from oracles.backend.loading import close, launch_configs, load_isolated
from oracles.protocol import OPERATIONS, Oracle
from oracles.registry import BUILTINS, installed, installed_version, third_party
from oracles.smoke_check import check_dtypes
from specs.errors import CastigateError
from specs.operations import methods_of_families

WIDTH = 96


@dataclass(frozen=True)
class BackendDescription:
    """Describes what a backend supports; ``reason`` says why one could not be loaded.

    The version of such a backend is None. ``open_roads`` pairs the form of each variant whose words
    a user brings with what it is, and ``smoke`` each dtype that fails the smoke check with what is
    wrong. The fields are the keys of ``castigate backends NAME --json``.
    """

    name: str
    variants: tuple[str, ...]
    open_roads: tuple[tuple[str, str], ...] = ()
    version: str | None = None
    reason: str | None = None
    claims: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    smoke: tuple[tuple[str, str], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the description as plain data for JSON."""
        return asdict(self) | {
            "open_roads": dict(self.open_roads),
            "smoke": dict(self.smoke),
        }

    def lines(self) -> Iterator[str]:
        """Yield the lines that a terminal shows."""
        if self.version is None:
            yield f"{self.name}: {self.reason}"
            return
        yield f"{self.name} {self.version}"
        faults = "; ".join(f"{dtype}: {fault}" for dtype, fault in self.smoke)
        texts = {
            "variants": ", ".join(self.variants),
            "and also": "; ".join(f"{self.name}:{form}, {what}" for form, what in self.open_roads),
            "claims": ", ".join(self.claims) or "nothing: it is only compared",
            "operations": ", ".join(self.operations),
            "dtypes": ", ".join(self.dtypes) or "decided case by case",
            "smoke": faults or "bits go in and out unchanged",
        }
        for title, text in texts.items():
            if title == "and also" and not text:
                continue
            for number, line in enumerate(wrap(text, WIDTH - 14, break_on_hyphens=False)):
                yield f"  {'' if number else title:<10}  {line}"


def backends_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="NAME", help="Backends to load and describe, also variants."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    python: PythonOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT,
) -> None:
    """List installed backends, or describe those named; explain how to install the others.

    Only backends that are named are loaded, to show their claims, operations, dtypes and smoke
    check. The exit code is 2 if one cannot be loaded.
    """
    if not names:
        for line in known_as_json() if as_json else known_backends():
            typer.echo(line)
        return
    is_missing = False
    for name, config in launch_configs(names, python or (), timeout).items():
        found = describe_backend(name, config)
        is_missing |= found.version is None
        if as_json:
            typer.echo(json.dumps(found.to_json(), ensure_ascii=False))
        else:
            for line in found.lines():
                typer.echo(line)
    if is_missing:
        raise typer.Exit(2)


def known_as_json() -> Iterator[str]:
    """Yield a JSON text per known backend: name, version (null if not installed), and pip extra."""
    found = {name: installed_version(name) for name in installed()}
    for name in [*BUILTINS, *third_party()]:
        extra = BUILTINS[name].extra if name in BUILTINS else None
        yield json.dumps({"name": name, "version": found.get(name), "extra": extra})


def known_backends() -> Iterator[str]:
    """Yield a line for each installed backend, and a few on how to get the others."""
    found = [*installed()]
    width = max(map(len, found))
    yield from (f"{name:<{width}}  {installed_version(name)}".rstrip() for name in found)
    missing = [name for name in BUILTINS if name not in found]
    extras = dict.fromkeys(extra for name in missing if (extra := BUILTINS[name].extra))
    elsewhere = [name for name in missing if not BUILTINS[name].extra]
    if missing:
        yield from wrap(f"not installed: {', '.join(missing)}", WIDTH, subsequent_indent="  ")
    if extras:
        # Not wrapped, because people paste it.
        yield f"  pip install 'castigate[{','.join(extras)}]'"
    if elsewhere:
        yield from _indented(f"castigate backends {' '.join(elsewhere)} says how to get these")
    yield "castigate backends NAME shows what a backend claims and supports"


def _indented(text: str) -> Iterator[str]:
    marks = {"initial_indent": "  ", "subsequent_indent": "    "}
    yield from wrap(text, WIDTH, break_on_hyphens=False, **marks)  # type: ignore[arg-type]


def operations_of(oracle: Oracle) -> tuple[str, ...]:
    """Return the names of the operations that an oracle offers.

    Every adapter can be swept, so that ``sweep`` is listed for programs alone.
    """
    is_adapter = isinstance(oracle, IsolatedOracle)
    return tuple(
        each
        for each in (*OPERATIONS, *methods_of_families())
        if hasattr(oracle, each) and not (is_adapter and each == "sweep")
        if not each.startswith("reproduce_")
    )


def describe_backend(name: str, config: LaunchConfig) -> BackendDescription:
    """Load a backend in a process of its own and describe it.

    If it cannot be loaded, the description has the reason.
    """
    builtin = BUILTINS.get(name)
    variants = builtin.variants if builtin else ()
    open_roads = tuple(builtin.open_roads.items()) if builtin else ()
    try:
        backend = load_isolated(name, config)
    except CastigateError as error:
        reason = str(error).removeprefix(f"backend `{name}`").lstrip(": ")
        return BackendDescription(name, variants, open_roads, reason=reason)
    try:
        checked = tuple(check_dtypes(backend))
        return BackendDescription(
            name,
            variants,
            open_roads,
            backend.version,
            claims=tuple(map(str, backend.claimed)),
            operations=operations_of(backend.oracle),
            dtypes=tuple(dtype for dtype, _ in checked) or getattr(backend.oracle, "dtypes", ()),
            smoke=tuple((dtype, fault) for dtype, fault in checked if fault),
        )
    finally:
        close(backend)
