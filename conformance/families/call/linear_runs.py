"""Whether a framework's own Linear layer is converted by a call, and runs afterwards."""

from __future__ import annotations

from conformance.families.call.members import telling_bits, wrong_conversion
from conformance.judging.asking import Ask, ask
from oracles.backend.replies import (
    Answered,
    Crashed,
    Declined,
    Malformed,
    Raised,
    Reply,
    Unanswered,
    class_name,
    one_line,
)
from oracles.backend.requests import MakeCall
from oracles.protocol import Bits, Returned, Tensor
from reports.problems import BrokenPromise, Fault, Refused, Unoffered
from specs.calls import Call
from specs.case_calls import LINEAR_PARAMETERS, call_of, case_of_member, linear_call
from specs.cases import Case
from specs.model.document import LAYER_RUNS, PromiseEntry
from specs.plain_text import plain_line

FEATURES = 2
"""How many inputs and outputs a Linear layer has that is run."""


def run_faults(case: Case, promise: PromiseEntry) -> Ask[list[Fault | Unoffered]]:
    """Check that a Linear layer is converted, takes inputs of both dtypes, and returns the new one.

    Not every framework computes in every dtype. A backend that cannot run a Linear created in the
    target's dtype is not asked to run one that was converted to it.
    """

    def run(call: Call) -> Ask[Answered[Returned] | Declined | Raised | Malformed]:
        return _survived((yield from ask(MakeCall(case, call, _linear_parameters(call)))))

    native = yield from run(linear_call(case, case.target, None))
    output = native.value.outputs.get(case.target) if isinstance(native, Answered) else None
    if not isinstance(output, Tensor) or output.dtype != case.target:
        return [_not_run(f"a Linear of {case.target}", native, output)]
    named = {"rule": LAYER_RUNS, "clause": promise.clause, "level": promise.level}
    call = linear_call(case, case.source, call_of(case).method)
    parameters = _linear_parameters(call)
    match (yield from run(call)):
        case Answered(found):
            pass
        case Declined() as declined:
            return [_not_run(f"a Linear of {case.source}", declined)]
        case Raised(error):
            where = f"a Linear of {case.source}"
            return [_layer_error(promise, where, class_name(error), one_line(error))]
        case Malformed(text):
            return [BrokenPromise(**named, promise="layer", facts=(case.source, text))]
    faults: list[Fault | Unoffered] = []
    wrong: list[BrokenPromise | None] = []
    for name in LINEAR_PARAMETERS:
        after = found.receiver.get(name)
        if after is None or after.dtype != case.target:
            facts = (name, after.dtype if after is not None else "lost", case.target)
            faults.append(BrokenPromise(**named, promise="layer's parameter", facts=facts))
            continue
        own = case_of_member(case, name, case.source)
        wrong.append(wrong_conversion(own, parameters[name], found.receiver, name, "a Linear"))
    faults += [each for each in wrong if each is not None][:1]
    for dtype in call.inputs:
        result = found.outputs.get(dtype, "no output")
        if isinstance(result, str):
            where = f"a Linear takes no input of {dtype} afterwards"
            kind, _, line = result.partition(": ")
            if line and kind.isidentifier():
                faults.append(_layer_error(promise, where, kind, line))
            else:
                faults.append(
                    BrokenPromise(**named, promise="layer's input", facts=(dtype, result))
                )
        elif result.dtype != case.target:
            facts = (result.dtype, case.target, dtype)
            faults.append(BrokenPromise(**named, promise="layer's output", facts=facts))
    return faults


def _not_run(layer: str, reply: Reply, output: Tensor | str | None = None) -> Unoffered:
    """Why the promise that a layer runs is not judged."""
    if isinstance(output, Tensor):
        why = f"gives {output.dtype}"
    else:
        why = (output or "no output") if isinstance(reply, Answered) else reply.text
    return Unoffered(plain_line(f"{layer} does not run: {why}"), f"{LAYER_RUNS} is not judged")


def _layer_error(promise: PromiseEntry, where: str, error: str, line: str) -> Refused:
    """The fault of an error that a layer raises when it is run."""
    return Refused(
        error,
        line,
        where=where,
        rule=LAYER_RUNS,
        clause=promise.clause,
        level=promise.level,
        kind="answer",
    )


def _linear_parameters(call: Call) -> dict[str, Bits]:
    shapes = {"weight": (FEATURES, FEATURES), "bias": (FEATURES,)}
    return {each.name: telling_bits(each.dtype, shapes[each.name]) for each in call.members}


def _survived(reply: Reply) -> Answered[Returned] | Declined | Raised | Malformed:
    """Return a reply; raise ``Unanswered`` if the process crashed."""
    if isinstance(reply, Crashed):
        raise Unanswered(reply)
    return reply
