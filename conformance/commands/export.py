"""Cases of the ONNX documents as folders in the layout of ONNX's own backend tests."""

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

from conformance.commands.options import SourceOption, TargetOption
from conformance.judging import bitcasts
from conformance.judging.quick_inputs import few_inputs
from conformance.running.run import selected_cases
from oracles.adapters.lazy_import import load
from oracles.adapters.onnx_models import ModelBuilder, bitcast_graph, cast_graph
from oracles.adapters.ort_memory import content_of
from oracles.protocol import Bits, NotInstalled, Unsupported
from oracles.reference.bitcast_bits import by_integer
from oracles.reference.expectations import Expected
from oracles.reference.reference_oracle import with_nans
from reports.diff.allowed_answers import Expectations
from reports.run_store.record import Selection
from reports.run_store.storage import place_of
from specs.bitcast_ruling import bitcast_ruling
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import format_named
from specs.operations import is_bitcast
from specs.outcomes import Anything, Exactly, ParsesTo, PlainText, Rejected
from specs.ruling import Ruling, ruling

DOCUMENTS = ("onnx-cast", "onnx-bitcast")
MOST = 16_384
"""Inputs of a case; the specials of float64 are 12,000 of them."""
EXACT = '{"rtol": 0, "atol": 0}\n'
"""Tells ONNX's runner that nothing near an answer is one; without it a thousandth is let pass."""
REFUSED = "to be refused"
OPEN = "open"
SEVERAL = "several answers are right"


@dataclass(frozen=True)
class Question:
    """A tensor, its only right answer, and why other inputs are left out."""

    inputs: Bits
    answers: Bits
    levels: Counter[str] = field(default_factory=Counter)
    left_out: Counter[str] = field(default_factory=Counter)


def questions(case: Case) -> list[Question]:
    """What a case is asked, a tensor each; nothing where no input has one right answer."""
    if is_bitcast(case):
        return list(_bitcasts(case))
    question = _cast(case)
    return [question] if question.inputs.size else []


def why_not(case: Case) -> str:
    """Why a case has no question."""
    if is_bitcast(case):
        return REFUSED if bitcast_ruling(case).is_rejection else OPEN
    rules = ruling(case)
    if rules.is_rejection:
        return REFUSED
    return OPEN if rules.is_open else ", ".join(_cast(case).left_out)


class Exporter:
    """Writes folders with the onnx package."""

    def __init__(self) -> None:
        try:
            onnx = load("onnx", "onnx")
        except NotInstalled as error:
            raise CastigateError(f"cannot write models: {error}") from None
        self._models = ModelBuilder(onnx)

    def write(self, case: Case, asked: list[Question], folder: Path) -> None:
        """Write the model of a case, and a data set per question."""
        bitcast = is_bitcast(case)
        graph = bitcast_graph(case) if bitcast else cast_graph(case)
        model = self._models.with_input(graph, asked[0].inputs.ndim)
        _write(folder / "model.onnx", model)
        (folder / "data.json").write_text(EXACT)
        for number, question in enumerate(asked):
            data = folder / f"test_data_set_{number}"
            for name, dtype, bits in (
                ("x", case.source, question.inputs),
                ("y", case.target, question.answers),
            ):
                content = content_of(format_named(dtype), bits)
                tensor = self._models.tensor(name, dtype, bits.shape, content)
                _write(data / f"{'input' if name == 'x' else 'output'}_0.pb", tensor)

    def knows(self, case: Case) -> str:
        """Why the onnx package cannot hold a case; nothing where it can."""
        try:
            self._models.road(case)
        except Unsupported as reason:
            return str(reason)
        return ""


def folder_of(case: Case) -> str:
    """The name of a case as a test."""
    return "test_" + re.sub(r"[^A-Za-z0-9]", "_", case.id)


def _cast(case: Case) -> Question:
    rules = ruling(case)
    nothing = np.zeros(0, rules.source.storage)
    if rules.is_rejection or rules.is_open:
        return Question(nothing, np.zeros(0, rules.target.storage))
    inputs = few_inputs(case, rules, MOST)
    expected = Expectations(independent=True).of(rules, inputs)
    kept, left_out = _kept(rules, expected)
    # Of texts only those that stay the same have one right answer.
    answers = inputs if rules.target.kind == "text" else with_nans(rules, expected)
    places = expected.places[kept].tolist()
    levels = Counter(rules.branches[place].level for place in places)
    return Question(inputs[kept], answers[kept], Counter(dict(levels)), left_out)


def _kept(rules: Ruling, expected: Expected) -> tuple[NDArray[np.bool_], Counter[str]]:
    """Which inputs have one right answer (a NaN counts as one), and why the others have not.

    Of two constants, the one that is recommended comes first and is taken.
    """
    kept, left_out = np.ones(expected.places.size, bool), Counter[str]()
    for place, branch in enumerate(rules.branches):
        here = expected.places == place
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


def _bitcasts(case: Case) -> Iterator[Question]:
    rules = bitcast_ruling(case)
    if rules.is_rejection or rules.result is None or not rules.keeps_bits:
        return
    for bits in bitcasts.contents(rules, seed=0):
        yield Question(bits, by_integer(rules, bits), Counter({rules.level: bits.size}))


def _write(file: Path, message: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(message.SerializeToString(deterministic=True))


export_app = typer.Typer(no_args_is_help=True, help="Write cases for the test runners of others.")


@export_app.callback()
def export_options() -> None:
    """Write cases for the test runners of others."""


@export_app.command(name="onnx")
def export_onnx(
    out: Annotated[Path, typer.Option(metavar="DIR", help="A new folder.")],
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
    for word in document or ():
        if word.partition(":")[0] not in DOCUMENTS:
            raise CastigateError(f"`{word}` is no document of ONNX; give {' or '.join(DOCUMENTS)}")
    wanted = Selection(documents=tuple(document or DOCUMENTS), source=source, target=target)
    cases, exporter = selected_cases(wanted), Exporter()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise CastigateError(f"{out} is not empty; give a new folder as --out")
    written: dict[str, Any] = {}
    left: dict[str, str] = {}
    for case in cases:
        asked = questions(case)
        reason = exporter.knows(case) if asked else why_not(case)
        if reason:
            left[case.id] = reason
            continue
        name = folder_of(case)
        assert name not in written
        try:
            exporter.write(case, asked, out / case.document / name)
        except OSError as error:
            raise CastigateError(
                f"cannot write {out}: {error.strerror}; give another --out"
            ) from None
        written[name] = {
            "case": case.id,
            "inputs": sum(each.inputs.size for each in asked),
            "levels": dict(sum((each.levels for each in asked), Counter())),
            "left-out": dict(sum((each.left_out for each in asked), Counter())),
        }
    text = json.dumps({"tests": written, "left-out": left}, indent=1) + "\n"
    place_of(str(out)).write("cases.json", text.encode(), "give another --out")
    reasons = Counter(left.values())
    typer.echo(f"{out}: {len(written):,} tests of {len(cases):,} cases")
    for reason, count in reasons.most_common():
        typer.echo(f"left out: {count:,} {reason}")
    raise typer.Exit(0 if written else 3)
