"""``castigate export``: writes cases for test runners of other projects, such as ONNX's."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from numpy.typing import NDArray

from conformance.commands.options import SourceOption, TargetOption, parse_folder
from conformance.judging import bitcasts
from conformance.judging.quick_inputs import few_inputs
from conformance.running.run import selected_cases
from oracles.adapters.onnx_models import ModelBuilder, bitcast_graph, cast_graph
from oracles.adapters.refusals import load
from oracles.adapters.tensor_memory import initializer_content
from oracles.protocol import Bits, NotInstalled, Unsupported
from oracles.reference.bitcast_bits import by_integer
from oracles.reference.expectations import Expected
from oracles.reference.reference_oracle import with_nans
from reports.diff.allowed_answers import Expectations
from reports.run_store.record import Selection
from reports.run_store.storage import folder_at
from specs.bitcast_ruling import bitcast_ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named
from specs.operations import is_bitcast
from specs.outcomes import Anything, Exactly, ParsesTo, PlainText, Rejected
from specs.ruling import Ruling, ruling

DOCUMENTS = ("onnx-cast", "onnx-bitcast")
MAX_INPUTS = 16_384
"""Of a case; the special values of float64 are 12,000 of them."""
EXACT = '{"rtol": 0, "atol": 0}\n'
"""Tolerances for ONNX's runner, which otherwise accepts a relative error of a thousandth."""
REJECTED = "to be refused"
OPEN = "open"
SEVERAL = "several answers are right"


@dataclass(frozen=True)
class DataSet:
    """A tensor of inputs, the only right answers, and why other inputs are left out."""

    inputs: Bits
    answers: Bits
    levels: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def data_sets(case: Case) -> list[DataSet]:
    """Return the data sets of a case; none if no input has a single right answer."""
    if is_bitcast(case):
        return list(_bitcast_data_sets(case))
    data_set = _cast_data_set(case)
    return [data_set] if data_set.inputs.size else []


def why_not(case: Case) -> str:
    """Say why a case has no data set."""
    if is_bitcast(case):
        return REJECTED if bitcast_ruling(case).is_rejection else OPEN
    rules = ruling(case)
    if rules.is_rejection:
        return REJECTED
    return OPEN if rules.is_open else ", ".join(_cast_data_set(case).left_out)


class Exporter:
    """Writes the folders of cases, with the onnx package."""

    def __init__(self) -> None:
        try:
            onnx = load("onnx", "onnx")
        except NotInstalled as error:
            raise CastigateError(f"cannot write models: {error}") from None
        self._models = ModelBuilder(onnx)

    def write(self, case: Case, sets: list[DataSet], folder: Path) -> None:
        """Write the model of a case and its data sets."""
        graph = bitcast_graph(case) if is_bitcast(case) else cast_graph(case)
        model = self._models.with_input(graph, sets[0].inputs.ndim)
        _write(folder / "model.onnx", model)
        (folder / "data.json").write_text(EXACT)
        for number, data_set in enumerate(sets):
            data = folder / f"test_data_set_{number}"
            for name, dtype, bits in (
                ("x", case.source, data_set.inputs),
                ("y", case.target, data_set.answers),
            ):
                content = initializer_content(format_named(dtype), bits)
                tensor = self._models.tensor(name, dtype, bits.shape, content)
                _write(data / f"{'input' if name == 'x' else 'output'}_0.pb", tensor)

    def why_unsupported(self, case: Case) -> str:
        """Say why the onnx package cannot express a case; nothing if it can."""
        try:
            self._models.road(case)
        except Unsupported as reason:
            return str(reason)
        return ""


def folder_of(case: Case) -> str:
    """Return the name of a case's folder, which ONNX's runner shows as the test's name."""
    return "test_" + re.sub(r"[^A-Za-z0-9]", "_", case.id)


def _cast_data_set(case: Case) -> DataSet:
    rules = ruling(case)
    nothing = np.zeros(0, rules.source.storage)
    if rules.is_rejection or rules.is_open:
        return DataSet(nothing, np.zeros(0, rules.target.storage))
    inputs = few_inputs(case, rules, MAX_INPUTS)
    expected = Expectations(independent=True).of(rules, inputs)
    kept, left_out = _kept(rules, expected)
    # To a text, only an input that stays as it is has one right answer.
    answers = inputs if rules.target.kind == "text" else with_nans(rules, expected)
    branches = expected.branch_indices[kept].tolist()
    levels = Counter(rules.branches[branch].level for branch in branches)
    return DataSet(inputs[kept], answers[kept], Counter(dict(levels)), left_out)


def _kept(rules: Ruling, expected: Expected) -> tuple[NDArray[np.bool_], Counter[str]]:
    """Return which inputs have one right answer, and count why the others have not.

    Any NaN counts as one answer. Of two constants, the recommended one comes first and is used.
    """
    kept, left_out = np.ones(expected.branch_indices.size, bool), Counter[str]()
    for index, branch in enumerate(rules.branches):
        here = expected.branch_indices == index
        match branch.strictest:
            case Exactly():
                continue
            case Anything():
                out, why = here, OPEN
            case PlainText() | ParsesTo() | Rejected():
                out, why = here, SEVERAL
            case _:
                out, why = here & (expected.codes != expected.others), SEVERAL
        if out.any():
            left_out[why] += int(out.sum())
            kept &= ~out
    return kept, left_out


def _bitcast_data_sets(case: Case) -> Iterator[DataSet]:
    rules = bitcast_ruling(case)
    if rules.is_rejection or rules.result is None or not rules.keeps_bits:
        return
    for bits in bitcasts.contents(rules, seed=0):
        yield DataSet(bits, by_integer(rules, bits), Counter({rules.level: bits.size}))


def _write(file: Path, message: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(message.SerializeToString(deterministic=True))


export_app = typer.Typer(
    no_args_is_help=True, help="Write cases for the test runners of other projects."
)


@export_app.callback()
def export_options() -> None:
    """Write cases for the test runners of other projects."""


@export_app.command(name="onnx")
def export_onnx(
    out: Annotated[Path, typer.Option(metavar="DIR", parser=parse_folder, help="A new folder.")],
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
    """Write a folder per case in the layout of ONNX's backend tests."""
    for name in document or ():
        if name.partition(":")[0] not in DOCUMENTS:
            raise CastigateError(
                f"document `{name}` is not one of ONNX; give {' or '.join(DOCUMENTS)}"
            )
    selection = Selection(documents=tuple(document or DOCUMENTS), source=source, target=target)
    cases, exporter = selected_cases(selection), Exporter()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CastigateError(f"{out} is not empty; give a new folder as --out")
    written: dict[str, Any] = {}
    left_out: dict[str, str] = {}
    for case in cases:
        sets = data_sets(case)
        reason = exporter.why_unsupported(case) if sets else why_not(case)
        if reason:
            left_out[case.id] = reason
            continue
        name = folder_of(case)
        assert name not in written
        try:
            exporter.write(case, sets, out / case.document / name)
        except OSError as error:
            raise CastigateError(
                f"cannot write {out}: {error.strerror}; give another --out"
            ) from None
        written[name] = {
            "case": case.id,
            "inputs": sum(each.inputs.size for each in sets),
            "levels": dict(sum((each.levels for each in sets), Counter())),
            "left-out": dict(sum((each.left_out for each in sets), Counter())),
        }
    text = json.dumps({"tests": written, "left-out": left_out}, indent=1) + "\n"
    folder_at(str(out)).write("cases.json", text.encode(), "give another --out")
    reasons = Counter(left_out.values())
    typer.echo(f"{out}: {len(written):,} tests of {len(cases):,} cases")
    for reason, count in reasons.most_common():
        typer.echo(f"left out: {count:,} {reason}")
    raise typer.Exit(0 if written else 3)
