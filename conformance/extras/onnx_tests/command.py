"""``castigate export onnx``: writes cases as tests for ONNX's own runner."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from conformance.commands.options import SourceOption, TargetOption, parse_local_folder
from conformance.extras.onnx_tests.tests import (
    INDEX,
    ExportedTest,
    ExportIndex,
    TextGroup,
    exported_case,
)
from conformance.families.bitcast.ruling import is_bitcast
from conformance.running.run import selected_cases
from oracles.adapters.onnx_models import ModelBuilder, bitcast_graph, cast_graph
from oracles.adapters.refusals import load
from oracles.adapters.tensor_memory import initializer_content
from oracles.protocol import NotInstalled, Unsupported
from reports.run_store.record import Selection
from reports.run_store.storage import filled_at_once
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named

DOCUMENTS = ("onnx-cast", "onnx-bitcast")
EXACT = '{"rtol": 0, "atol": 0}\n'
"""Tolerances for ONNX's runner, which otherwise accepts a relative error of a thousandth."""


class Exporter:
    """Writes tests as folders of ONNX's backend tests, by the onnx package.

    The constructor raises CastigateError if the package is not installed.
    """

    def __init__(self) -> None:
        try:
            onnx = load("onnx", "onnx")
        except NotInstalled as error:
            raise CastigateError(f"cannot write models: {error}") from None
        self._models = ModelBuilder(onnx)

    def write(self, case: Case, test: ExportedTest, folder: Path) -> None:
        """Write a case's model, and one test's data and tolerances of zero, into ``folder``."""
        graph = bitcast_graph(case) if is_bitcast(case) else cast_graph(case)
        model = self._models.with_input(graph, test.data_sets[0].inputs.ndim)
        _write(folder / "model.onnx", model)
        (folder / "data.json").write_text(EXACT)
        for number, data_set in enumerate(test.data_sets):
            data = folder / f"test_data_set_{number}"
            for name, dtype, bits in (
                ("x", case.source, data_set.inputs),
                ("y", case.target, data_set.answers),
            ):
                content = initializer_content(format_named(dtype), bits)
                tensor = self._models.tensor(name, dtype, bits.shape, content)
                _write(data / f"{'input' if name == 'x' else 'output'}_0.pb", tensor)

    def why_unsupported(self, case: Case) -> str:
        """Return why the onnx package cannot express a case; empty if it can."""
        try:
            self._models.road(case)
        except Unsupported as reason:
            return str(reason)
        return ""


def folder_of(case: Case, group: TextGroup | None = None) -> str:
    """Return the name of the folder for a case's test, or for that of one group of texts.

    ONNX's runner shows it as the test's name.
    """
    return "test_" + re.sub(r"[^A-Za-z0-9]", "_", f"{case.id}/{group}" if group else case.id)


def _write(file: Path, message: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(message.SerializeToString(deterministic=True))


def export_onnx(
    out: Annotated[
        Path, typer.Option(metavar="DIR", parser=parse_local_folder, help="A new folder.")
    ],
    document: Annotated[
        list[str] | None,
        typer.Option(
            "--document",
            metavar="NAME[:VERSION]",
            help="onnx-cast or onnx-bitcast (repeatable; default: both, all versions).",
        ),
    ] = None,
    source: SourceOption = None,
    target: TargetOption = None,
) -> None:
    """Write tests in the layout of ONNX's backend tests, with an index by dtype.

    Exit code 3 if no case has a test.
    """
    for name in document or ():
        if name.partition(":")[0] not in DOCUMENTS:
            raise CastigateError(
                f"document `{name}` is not exported; give {' or '.join(DOCUMENTS)}"
            )
    selection = Selection(
        documents=tuple(document or DOCUMENTS),
        source=tuple(source or ()),
        target=tuple(target or ()),
    )
    cases, exporter = selected_cases(selection), Exporter()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CastigateError(f"{out} is not empty; give a new folder as --out")
    try:
        with filled_at_once(out) as folder:
            index = _export(exporter, cases, folder)
            (folder / INDEX).write_bytes(index.to_json())
    except OSError as error:
        raise CastigateError(f"cannot write {out}: {error.strerror}; give another --out") from None
    typer.echo(f"{out}: {len(index.tests):,} tests of {len(cases):,} cases")
    for reason, count in index.reasons():
        typer.echo(f"left out: {count:,} {reason}")
    raise typer.Exit(0 if index.tests else 3)


def _export(exporter: Exporter, cases: Iterable[Case], out: Path) -> ExportIndex:
    """Write the tests of all cases, and return the index of these and of what is left out."""
    index, written = ExportIndex(), set[str]()
    for case in cases:
        exported = exported_case(case)
        reason = exported.why_no_test or exporter.why_unsupported(case)
        if reason:
            index.cases_left_out[case.id] = reason
            continue
        if exported.left_out:
            index.inputs_left_out[case.id] = dict(exported.left_out)
        for test in exported.tests:
            folder = f"{case.document}/{folder_of(case, test.group)}"
            assert folder not in written
            written.add(folder)
            exporter.write(case, test, out / folder)
            index.add(case, test, folder)
    return index
