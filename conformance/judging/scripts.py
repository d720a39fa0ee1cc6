"""Scripts that reproduce one answer: the adapter's own, or else a command of castigate."""

from __future__ import annotations

import shlex

import numpy as np

from conformance.judging.asking import Ask, ask
from conformance.judging.subject import Subject
from conformance.judging.values import ask_values, value_request
from oracles.adapters.script_text import UNEVEN
from oracles.backend.replies import Answered, Raised, described
from oracles.backend.requests import MethodRequest, Script
from oracles.protocol import Bits
from reports.grading.divergences import datum_of
from reports.problems import ShownDatum
from specs.cases import Case
from specs.formats import format_named
from specs.operations import of_family, operation_of
from specs.plain_text import plain_text


def script(subject: Subject, case: Case, bits: Bits, answer: ShownDatum | None = None) -> Ask[str]:
    """Return a script that shows a failure on a tensor; empty if the run hides such scripts.

    With a wrong ``answer`` to one input, the script's tensor makes the backend repeat it. There is
    a command of castigate only for a row of one element.
    """
    if subject.settings.hides_unclaimed and not subject.claims(case):
        return ""
    if answer is not None:
        bits = yield from tensor_that_shows(case, bits, answer)
    shaped = of_family(operation_of(case), "tensor")
    command = "" if shaped else _command(subject.name, case, bits)
    shown = shaped.request(case, bits) if shaped else value_request(case, bits)
    match (yield from ask(Script(shown))):
        case Answered(text):
            return plain_text(text or command)
        case Raised(error) if command:
            return plain_text(f"{command}\n# the adapter's own script failed: {described(error)}")
    return ""


def script_of(subject: Subject, shown: MethodRequest) -> Ask[str]:
    """Return the adapter's script for a request; empty if it has none or the run hides it."""
    if subject.settings.hides_unclaimed and not subject.claims(shown.case):
        return ""
    match (yield from ask(Script(shown))):
        case Answered(text):
            return plain_text(text)
    return ""


def tensor_that_shows(case: Case, one: Bits, answer: ShownDatum) -> Ask[Bits]:
    """Return one input, or a row of it where it gets another answer when it is alone.

    Vector instructions may answer otherwise than the loop that does the rest of a row.
    """
    match (yield from ask_values(case, one)):
        case Answered(alone) if datum_of(alone[0]) != answer:
            return np.resize(one, UNEVEN)
    return one


def _command(backend: str, case: Case, bits: Bits) -> str:
    if bits.shape != (1,):
        return ""
    given = datum_of(bits[0])
    shown = given if isinstance(given, str) else format_named(case.source).hexadecimal(given)
    return f"castigate explain {case.id} --backend {shlex.quote(backend)} -- {shlex.quote(shown)}"
