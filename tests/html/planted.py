"""Runs with planted judgements, and helpers that read a report back."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b64decode
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np

from reports.judgement import DatumArray, InputsAndAnswers, Judgement, Verdict
from reports.problems import Note
from reports.run_store.record import BackendRecord, serialize_record
from reports.run_store.store import create
from specs.cases import Case
from specs.editions import edition
from specs.loader import documents
from tests.reports.common import divergence, record, steps

STARTED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BACKENDS = ("ort", "torch", "vendor:fast")
HALF = "onnx-cast:25/float32/float16"
Plant = Callable[[str, Case], Judgement | None]
"""Returns the judgement of a backend and a case, or None for the default one."""


def cases() -> list[Case]:
    """Two sources of a large document, and the whole of a small one with many modes."""
    onnx = edition(documents()["onnx-cast"], "25").cases()
    pypto = edition(documents()["pypto-cast"], "0.2").cases()
    return [*(case for case in onnx if case.source in ("float32", "int8")), *pypto]


def default_judgement(backend: str, case: Case) -> Judgement:
    """A judgement that depends on the id of the case, so that most verdicts occur in a run."""
    number = sum(map(ord, case.id)) % 11
    if case.target == "float8e4m3fn" and backend != "ort":
        verdict: Verdict = "violates" if backend == "torch" else "differs"
        wrong = divergence(steps(3, width=2), allowed=("0x00", "any-nan"))
        return Judgement(case.id, backend, verdict, (wrong,), inputs=256, reproduction="print(1)\n")
    not_answered: dict[int, Verdict] = {
        0: "unsupported",
        1: "error",
        2: "crashed",
        3: "not-run",
    }
    if backend == "vendor:fast" and number in not_answered:
        reason = Note(f"no {case.target} here")
        return Judgement(case.id, backend, not_answered[number], (reason,))
    if case.id == HALF:
        return Judgement(case.id, backend, "conforms", inputs=2, answered=half_answers(backend))
    if number == 4:
        return Judgement(case.id, backend, "open", inputs=256, open_inputs=256)
    return Judgement(case.id, backend, "conforms", inputs=256, open_inputs=3)


def half_answers(backend: str) -> InputsAndAnswers:
    """Answers to infinity and NaN; one backend returns another NaN payload than the others."""
    answers = [0x7C00, 0x7E00 if backend != "vendor:fast" else 0x7E01]
    inputs = np.array([0x7F800000, 0x7FC00000], np.uint32)
    return InputsAndAnswers(
        DatumArray("float32", inputs), DatumArray("float16", np.array(answers, np.uint16))
    )


def planted_run(
    folder: Path,
    plant: Plant = lambda backend, case: None,
    backends: Iterable[str] = BACKENDS,
    after: int = 0,
    complete: bool = True,
    document: str = "",
    of: Iterable[Case] = (),
    **changes: Any,
) -> str:
    """Write a run that began ``after`` days after STARTED, of some cases or of ``cases()``."""
    started = STARTED + timedelta(days=after)
    named = tuple(BackendRecord(name=name, version="1.2") for name in backends)
    fields = {
        "documents": {name: each.digest for name, each in documents().items()},
        "backends": named,
        "started": started,
        **changes,
    }
    store = create(str(folder), record(**fields))
    rows = [
        (each.name, case, plant(each.name, case) or default_judgement(each.name, case))
        for each in named
        for case in of or cases()
        if document in ("", case.document)
    ]
    if complete:
        store.finish(iter(rows), lambda: 1)
        store = replace(store, record=store.record.model_copy(update={"finished": started}))
        ended = {"finished": started, "complete": True, "exit_code": 1}
        sealed = serialize_record(store.record.model_copy(update=ended))
        (folder / "run.json").write_bytes(sealed)
    return str(folder)


def one_cell(backend: str, name: str, judgement: Judgement) -> Plant:
    """Plant a judgement for one backend and one case only."""
    return lambda planted, case: judgement if (planted, case.id) == (backend, name) else None


def violated(backend: str, name: str, rows: int = 1, rule: str = "rounds") -> Judgement:
    """A judgement in which one rule is broken on ``rows`` runs of inputs."""
    wrong = divergence(steps(rows), rule=rule)
    return Judgement(name, backend, "violates", (wrong,), inputs=256)


def data(site: Path, name: str) -> Any:
    """The content of a data file of a report."""
    text = (site / "data" / f"{name}.js").read_text(encoding="ascii")
    found = re.fullmatch(r'castigate\.receive\("([\w.-]+)",\n"([\w+/=]+)"\);\n', text)
    assert found is not None
    assert found[1] == name
    return json.loads(zlib.decompress(b64decode(found[2])))


class Elements(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data
