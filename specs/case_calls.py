"""Builds the call that a case of a call document stands for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache, lru_cache
from itertools import cycle
from typing import cast

from specs.cases import FORM, MEMBER, Argument, ArgumentKind, Call, Case, Member
from specs.formats import format_named
from specs.loader import document_named
from specs.model.document import FormEntry, ReceiverEntry

OTHER_MEMBER_DTYPE, FURTHER_DTYPE = "float32", "float64"
"""The dtype of the layer members that a case is not about, and a second dtype for them."""

LINEAR_PARAMETERS = ("weight", "bias")
"""The parameters of a Linear layer."""

DTYPE_KINDS = ("dtype-name", "dtype", "tensor", "gpu-tensor")
"""The kinds of arguments whose value is a dtype, or `source` or `target` for the case's own."""


@cache
def receiver_of(document: str) -> ReceiverEntry | None:
    """Return the receiver of a shipped document's calls; None if its cases are not calls."""
    return document_named(document).entry.receiver


def form_of(case: Case) -> FormEntry:
    """Return the form of a case of calls; raise KeyError for any other case."""
    return document_named(case.document).entry.forms[case.mode[FORM]]


def member_of(case: Case) -> str:
    """Return the layer member that a case is about; empty if the receiver is a tensor."""
    return case.mode.get(MEMBER, "")


@lru_cache(maxsize=1024)
def call_of(case: Case) -> Call:
    """Return the call that a case of calls stands for.

    The case's dtypes replace the words `source` and `target` in its arguments.
    """
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


def case_of_member(case: Case, name: str, dtype: str) -> Case:
    """Return the case of the same call about the member ``name``, whose source is ``dtype``.

    The document's rules decide this case even if the document does not list it.
    """
    modes = tuple((key, name if key == MEMBER else value) for key, value in case.modes)
    return replace(case, source=dtype, modes=modes)


@lru_cache(maxsize=1024)
def mixed_call(case: Case) -> Call:
    """Return a case's call on a layer whose other members have two dtypes, one the target's.

    If the target is no float, these are float32 and float64: frameworks lack parameters of other
    dtypes.
    """
    call, usual = call_of(case), (OTHER_MEMBER_DTYPE, FURTHER_DTYPE)
    own = (case.target,) if format_named(case.target).kind == "float" else ()
    dtypes = cycle((*own, *(each for each in usual if each != case.target))[:2])
    members = tuple(
        member if member.name == member_of(case) else replace(member, dtype=next(dtypes))
        for member in call.members
    )
    return replace(call, members=members)


def linear_call(case: Case, dtype: str, method: str | None) -> Call:
    """Return a case's call on a Linear layer of ``dtype``, with inputs of both case dtypes.

    The layer runs on these inputs after the call. If ``method`` is None, nothing is called, and the
    layer runs on one input of ``dtype``.
    """
    call = call_of(case)
    members = tuple(Member(name, "parameter", dtype) for name in LINEAR_PARAMETERS)
    if method is None:
        return Call("linear", members, None, inputs=(dtype,))
    inputs = tuple(dict.fromkeys((case.source, case.target)))
    return Call("linear", members, method, call.args, call.kwargs, call.device, inputs)


def _members(case: Case, receiver: ReceiverEntry) -> Iterator[Member]:
    if not receiver.members:
        yield Member("", "tensor", case.source)
    for name, entry in receiver.members.items():
        yield Member(
            name, entry.kind, case.source if name == member_of(case) else OTHER_MEMBER_DTYPE
        )


def _argument(case: Case, text: str) -> Argument:
    kind, _, value = text.partition(" ")
    own_dtypes = {"source": case.source, "target": case.target}
    if kind in DTYPE_KINDS:
        value = own_dtypes.get(value, value)
    # Loading a document has checked the kind.
    return Argument(cast(ArgumentKind, kind), value)
