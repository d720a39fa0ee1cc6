"""The case of ``small-floats`` that says what a codec has to answer."""

from __future__ import annotations

from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format, format_named
from specs.loader import document_named
from specs.selection import cases_of_pair

YARDSTICK, VERSION = "small-floats", "1"
WIDE = ("float32", "float16", "bfloat16")
"""The formats that codecs encode from, and decode to."""


def small_formats() -> list[str]:
    """The formats that a codec can encode and decode."""
    return [name for name in _dtypes() if name != "float32"]


def codec_case(
    name: str, wide: str, encodes: bool, rounding: str | None, overflow: str | None
) -> Case:
    """The case of a format and the options; raise CastigateError where these contradict it."""
    if name not in small_formats():
        raise CastigateError(
            f"--format `{name}` is no small float; the formats are {', '.join(small_formats())}"
        )
    if wide not in WIDE or wide == name:
        others = [each for each in WIDE if each != name]
        raise CastigateError(f"--from `{wide}` has no codec for {name}; use {' or '.join(others)}")
    form = format_named(name)
    source, target = (wide, name) if encodes else (name, wide)
    cases = cases_of_pair(YARDSTICK, VERSION, source, target)
    given = {"round": rounding, "overflow": overflow}
    for option, value in given.items():
        known = document_named(YARDSTICK).entry.parameters[option].values
        if value is not None and value not in known:
            raise CastigateError(f"--{option} `{value}` is unknown; use {', '.join(known)}")
        if value is not None and not cases[0].modes:
            raise CastigateError(
                f"--{option}: nothing is rounded from {source} to {target}; leave it out"
            )
    check_overflow(form if encodes else format_named(wide), overflow)
    for case in cases:
        if all(value in (None, case.mode.get(option)) for option, value in given.items()):
            return case
    raise AssertionError(given)


def check_overflow(target: Format, overflow: str | None) -> None:
    """Raise CastigateError if a format lacks the value that overflow is to give."""
    offered = ["saturate"]
    if target.nan_codes:
        offered.append("nan")
    if target.entry.infinity:
        offered.append("inf")
    if overflow is not None and overflow not in offered:
        lacks = {"nan": "NaN", "inf": "infinity"}[overflow]
        raise CastigateError(
            f"--overflow {overflow}: {target.name} has no {lacks}; use {' or '.join(offered)}"
        )


def _dtypes() -> list[str]:
    return list(document_named(YARDSTICK).entry.versions[VERSION].to or ())
