"""``castigate selftest``: whether a backend answers as its protocol requires, and how fast."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from textwrap import wrap
from time import perf_counter
from typing import Annotated

import typer

from conformance.commands.backends import operations_of
from conformance.commands.options import PythonOption, TimeoutOption
from conformance.extras.selftest.checks import CheckResult, SelfTest
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, launch_configs, load_isolated
from oracles.protocol import Oracle, WithDtypes, claims_of
from oracles.registry import Backend
from oracles.smoke_check import check_dtypes
from oracles.wire.program_oracle import ProgramOracle
from specs.errors import CastigateError
from specs.formats import formats

TIMEOUT = 10.0
"""Seconds that one answer may take; the rows are short."""
WIDTH, INDENT = 98, 18
BROKEN, NOTHING_ANSWERED = 1, 3


def selftest_command(
    name: Annotated[
        str, typer.Argument(metavar="BACKEND", help="exec:COMMAND, or any other backend.")
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON lines.")] = False,
    python: PythonOption = None,
    timeout: TimeoutOption = TIMEOUT,
) -> None:
    """Check that a program speaks the protocol, and time it; no document judges its answers.

    Exit codes: 0 ready to be judged, 1 something that docs/protocol.md requires is broken, 2 bad
    usage or a program that does not start, 3 nothing was answered.
    """
    [config] = launch_configs([name], python or (), timeout).values()
    with ExitStack() as stack:
        begun = perf_counter()
        backend = load_isolated(name, config)
        seconds = perf_counter() - begun
        stack.callback(close, backend)
        tested = SelfTest(backend)
        results: list[CheckResult] = []
        for part in (
            _introduction(backend, seconds),
            tested.identities(),
            tested.named_tensors(),
            tested.values(),
            tested.limits(),
            _speeds(tested, backend, config),
        ):
            found = list(part)
            results += found
            for line in map(_as_json, found) if as_json else _lines(found):
                typer.echo(line)
    broken = [each for each in results if each.is_broken]
    if not as_json:
        typer.echo(_conclusion(backend, broken, tested.has_answers))
    if broken or not tested.has_answers:
        raise typer.Exit(BROKEN if broken else NOTHING_ANSWERED)


def _introduction(backend: Backend, seconds: float) -> Iterator[CheckResult]:
    """Yield the backend's statements about itself, and the results of an adapter's smoke check."""
    oracle = backend.oracle
    yield CheckResult("hello", backend.name, f"{oracle.name} {oracle.version}, {seconds:.2f} s")
    claims = ", ".join(map(str, backend.claimed))
    yield CheckResult("claims", "", claims or "nothing: it is only compared")
    operations = ", ".join(operations_of(oracle))
    if isinstance(oracle, ProgramOracle) and "sweep" in oracle.description.operations:
        operations += f"; sweeps in {'shared memory' if oracle.description.memory else 'payloads'}"
    yield CheckResult("operations", "", operations)
    if isinstance(oracle, WithDtypes):
        absent = ", ".join(dtype for dtype in formats() if dtype not in oracle.dtypes)
        yield CheckResult("not offered", "", absent or "no dtype: all are")
    for dtype, fault in check_dtypes(backend):
        yield CheckResult("smoke", dtype, fault or "unchanged", is_broken=bool(fault))


def _speeds(tested: SelfTest, backend: Backend, config: LaunchConfig) -> Iterator[CheckResult]:
    """Yield the speeds; a program that uses shared memory is also started without it."""
    without_memory: Oracle | None = None
    oracle = backend.oracle
    if isinstance(oracle, ProgramOracle) and oracle.description.memory:
        try:
            without_memory = ProgramOracle(backend.name, config, offers_memory=False)
        except CastigateError as error:
            text = str(error).removeprefix(f"backend `{backend.name}`").lstrip(": ")
            yield CheckResult("hello", "without shared memory", text, is_broken=True)
    try:
        yield from tested.speeds(without_memory)
    finally:
        if without_memory is not None:
            close(Backend(backend.name, without_memory))


def _lines(results: Iterable[CheckResult]) -> Iterator[str]:
    """Yield results as lines for a terminal.

    Subjects with equal results share a line, except speeds, which are equal only by chance.
    """
    groups: dict[tuple[str, str, str, bool], list[str]] = {}
    for each in results:
        alone = each.subject if each.check == "speed" else ""
        groups.setdefault((each.check, alone, each.result, each.is_broken), []).append(each.subject)
    before = ""
    for (check, _, result, is_broken), subjects in groups.items():
        title = check if check != before else ""
        before = check
        text = ": ".join(filter(None, (", ".join(subjects), result)))
        text = f"BROKEN  {text}" if is_broken else text
        for number, line in enumerate(wrap(text, WIDTH - INDENT, break_on_hyphens=False)):
            yield f"{'' if number else title:<{INDENT}}{line}"


def _as_json(result: CheckResult) -> str:
    return json.dumps(asdict(result), ensure_ascii=False)


def _conclusion(backend: Backend, broken: list[CheckResult], has_answers: bool) -> str:
    if broken:
        count = f"{len(broken)} result{'s' if len(broken) > 1 else ''}"
        return f"not ready: {count} broken, see docs/protocol.md"
    if not has_answers:
        return "nothing was answered, so nothing could be checked"
    words = ["castigate", "run", "--backend", backend.name]
    if claims_of(backend.oracle) is not None:
        words += [f"--document={claim}" for claim in backend.claimed]
    return f"ready: {shlex.join([*words, '--out', 'RUN'])} judges it"
