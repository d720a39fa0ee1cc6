"""Asks a backend for a script that reproduces one answer, or names a command of castigate."""

from __future__ import annotations

import shlex

import numpy as np

from conformance.judging.answers import Answered, attempt, described
from conformance.judging.calls import answer_of, held_by
from oracles.adapters.script_text import UNEVEN
from oracles.protocol import Bits, Oracle, WithReproduce, WithReproduceBitcast, WithReproduceCall
from oracles.registry import Backend
from reports.diff.divergences import datum_of
from reports.diff.judgement import Datum
from specs.case_calls import call_of, receiver_of
from specs.cases import Case
from specs.formats import format_named
from specs.operations import is_bitcast
from specs.plain_text import plain_text


def reproduction(backend: Backend, case: Case, bits: Bits) -> str:
    """Return the adapter's script for a tensor, or else a command of castigate.

    Of tensors that are no row of one element there is no such command.
    """
    command = _command(backend, case, bits)
    try:
        return plain_text(_script(backend.oracle, case, bits) or command)
    except (Exception, SystemExit) as error:
        if not command:
            return ""
        return plain_text(f"{command}\n# the adapter's own script failed: {described(error)}")


def tensor_that_shows(oracle: Oracle, case: Case, one: Bits, answer: Datum) -> Bits:
    """Return one input, or a row of it where it gets another answer when it is alone.

    Vector instructions may answer otherwise than the loop that does the rest of a row.
    """
    match attempt(lambda: datum_of(answer_of(oracle, case, one.copy()).reshape(-1)[0])):
        case Answered(alone) if alone != answer:
            return np.resize(one, UNEVEN)
    return one


def _script(oracle: object, case: Case, bits: Bits) -> str:
    """Return the adapter's own script; empty if it writes none."""
    if is_bitcast(case):
        if isinstance(oracle, WithReproduceBitcast):
            return str(oracle.reproduce_bitcast(case, bits.copy()))
    elif receiver_of(case.document) is not None:
        if isinstance(oracle, WithReproduceCall):
            return str(oracle.reproduce_call(case, call_of(case), held_by(case, bits.copy())))
    elif isinstance(oracle, WithReproduce):
        return str(oracle.reproduce(case, bits.copy()))
    return ""


def _command(backend: Backend, case: Case, bits: Bits) -> str:
    if is_bitcast(case) or bits.shape != (1,):
        return ""
    given = datum_of(bits[0])
    shown = given if isinstance(given, str) else format_named(case.source).hexadecimal(given)
    return (
        f"castigate explain {case.id} --backend {shlex.quote(backend.name)} -- {shlex.quote(shown)}"
    )
