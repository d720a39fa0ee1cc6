"""The call that a case of a document with call forms stands for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from specs.calls import FORM, MEMBER, Argument, Call, Member
from specs.cases import Case
from specs.document import FormEntry, ReceiverEntry
from specs.load import document_named

OTHER_MEMBERS = "float32"
"""The dtype of a layer's members that a case does not look at."""


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
        receiver.is_,
        tuple(_members(case, receiver)),
        receiver.method,
        tuple(_argument(case, text) for text in form.args),
        tuple((name, _argument(case, text)) for name, text in form.kwargs.items()),
        form.device_before,
    )


def _members(case: Case, receiver: ReceiverEntry) -> Iterator[Member]:
    if not receiver.members:
        yield Member("", "tensor", case.source)
    for name, entry in receiver.members.items():
        yield Member(name, entry.kind, case.source if name == member_of(case) else OTHER_MEMBERS)


def _argument(case: Case, text: str) -> Argument:
    kind, _, value = text.partition(" ")
    own = {"source": case.source, "target": case.target}
    if kind in ("dtype-name", "dtype", "tensor"):
        value = own.get(value, value)
    match kind:
        case "dtype-name" | "dtype" | "device-name" | "device" | "tensor" | "word":
            return Argument(kind, value)
    raise AssertionError(f"the kind `{kind}` is checked when a document is read")
