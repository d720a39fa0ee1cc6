"""Which rules decide when a person names two dtypes: those of a document, or of a yardstick.

A yardstick is a set of rules without a page. ``small-floats`` says how numbers become floats of at
most eight bits: nearest, ties to even, and clamped, unless a mode says otherwise. ``plain-cast``
says what most programs do between all other dtypes, and leaves open what systems do differently.
"""

from __future__ import annotations

from collections.abc import Mapping

from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format
from specs.loader import document_and_version, document_word, documents, yardsticks
from specs.questions import case_meant
from specs.selection import cases_of_pair

SMALL_FLOATS, PLAIN_CASTS = "small-floats:1", "plain-cast:open"
SMALL_BITS = 8
Mode = Mapping[str, object]
"""The values of a document's parameters by name, such as ``{"saturate": 0}``."""


def chosen_case(source: Format, target: Format, document: str | None, mode: Mode | None) -> Case:
    """Return the case of a pair in a document or yardstick, or in the yardstick for the pair.

    Without a version, the document's newest one that has the pair decides. Raise CastigateError if
    none has the pair in this mode.
    """
    if not isinstance(mode, Mapping | None):
        raise CastigateError(f"mode `{mode}` is no dict; write one such as {{'saturate': 0}}")
    modes = [f"{name}:{value}" for name, value in (mode or {}).items()]
    document = document_word(document) if document is not None else None
    if document is not None and document.partition(":")[0] not in yardsticks():
        document_and_version(document)  # Its error says which documents have a similar name.
        return case_meant(document, [source.name, target.name, *modes])
    if document is not None:
        return _of_yardstick(document, source, target, modes)
    is_small = target.kind == "float" and target.bits <= SMALL_BITS
    for yardstick in [SMALL_FLOATS, PLAIN_CASTS] if is_small else [PLAIN_CASTS, SMALL_FLOATS]:
        if _cases(yardstick, source, target):
            return _of_yardstick(yardstick, source, target, modes)
    known = [name for name in documents() if _has_pair(name, source, target)]
    raise CastigateError(
        f"no yardstick has {source.name} to {target.name}; "
        + (f"name a document: {', '.join(known)}" if known else "no document has it either")
    )


def _of_yardstick(yardstick: str, source: Format, target: Format, modes: list[str]) -> Case:
    cases = _cases(yardstick, source, target)
    if not cases:
        raise CastigateError(f"{yardstick} has no pair {source.name} to {target.name}")
    for case in cases:
        if set(modes) <= set(case.id.split("/")[3:]):
            return case
    known = sorted({part for case in cases for part in case.id.split("/")[3:]})
    raise CastigateError(
        f"{yardstick} has no mode {', '.join(modes)} for {source.name} to {target.name}; "
        + (f"its modes are {', '.join(known)}" if known else "this pair has no modes")
    )


def _cases(yardstick: str, source: Format, target: Format) -> list[Case]:
    document, version = document_and_version(yardstick, takes_yardsticks=True)
    newest = version or list(document.entry.versions)[-1]
    return cases_of_pair(document.name, newest, source.name, target.name)


def _has_pair(name: str, source: Format, target: Format) -> bool:
    entry = documents()[name].entry
    return entry.operation == "cast" and any(
        cases_of_pair(name, version, source.name, target.name) for version in entry.versions
    )
