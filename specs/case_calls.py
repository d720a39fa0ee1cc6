"""The call that a case of a document with call forms stands for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import cast

from specs.calls import FORM, MEMBER, Argument, ArgumentKind, Call, Member
from specs.cases import Case
from specs.loader import document_named
from specs.model.document import FormEntry, ReceiverEntry

OTHER_MEMBERS = "float32"
"""The dtype of a layer's members that a case does not look at."""

LINEAR = ("weight", "bias")
"""The parameters of a Linear layer."""

OF_A_DTYPE = ("dtype-name", "dtype", "tensor", "gpu-tensor")
"""The kinds of arguments whose value may be the case's own `source` or `target`."""


@cache
def receiver_of(document: str) -> ReceiverEntry | None:
    """What a shipped document's calls are made on; None where its cases are no calls."""
    return document_named(document).entry.receiver


def form_of(case: Case) -> FormEntry:
    """The form of a case's call."""
    return document_named(case.document).entry.forms[case.mode[FORM]]


def member_of(case: Case) -> str:
    """The member that a case looks at; a receiver that is a tensor has one without a name."""
    return case.mode.get(MEMBER, "")


def call_of(case: Case) -> Call:
    """A case's call, in the case's own dtypes."""
    receiver, form = receiver_of(case.document), form_of(case)
    assert receiver is not None
    return Call(
        form.on or receiver.is_,
        tuple(_members(case, receiver)),
        receiver.method,
        tuple(_argument(case, text) for text in form.args),
        tuple((name, _argument(case, text)) for name, text in form.kwargs.items()),
        form.device_before,
    )


def linear_call(case: Case, dtype: str, method: str | None) -> Call:
    """A case's call on a Linear layer of a dtype, which is then run on inputs of both dtypes.

    Without a method nothing is called, and the layer is run on an input of its own dtype.
    """
    made = call_of(case)
    members = tuple(Member(name, "parameter", dtype) for name in LINEAR)
    if method is None:
        return Call("linear", members, None, inputs=(dtype,))
    inputs = tuple(dict.fromkeys((case.source, case.target)))
    return Call("linear", members, method, made.args, made.kwargs, made.device, inputs)


def _members(case: Case, receiver: ReceiverEntry) -> Iterator[Member]:
    if not receiver.members:
        yield Member("", "tensor", case.source)
    for name, entry in receiver.members.items():
        yield Member(name, entry.kind, case.source if name == member_of(case) else OTHER_MEMBERS)


def _argument(case: Case, text: str) -> Argument:
    kind, _, value = text.partition(" ")
    own = {"source": case.source, "target": case.target}
    if kind in OF_A_DTYPE:
        value = own.get(value, value)
    # The kind is checked when a document is read.
    return Argument(cast(ArgumentKind, kind), value)
