"""The documents of Arrow, Polars and DuckDB allow and refuse what their pages say."""

from __future__ import annotations

import struct
from itertools import product

import pytest

from oracles.reference import exact_rulings
from specs.cases import Case
from specs.editions import edition
from specs.loader import document_named
from specs.outcomes import Anything, Rejected
from specs.ruling import ruling

WHOLE = tuple(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64))
FLOATS = ("float16", "float32", "float64")
VERSIONS = {"arrow-cast": "26", "polars-cast": "2", "duckdb-cast": "2.0"}
SOURCES_AND_TARGETS = {
    "arrow-cast": ((*WHOLE, *FLOATS), ("bool", *WHOLE, *FLOATS)),
    "polars-cast": (("bool", *WHOLE, *FLOATS), ("bool", *WHOLE, *FLOATS)),
    "duckdb-cast": (("bool", *WHOLE, *FLOATS[1:]), (*WHOLE, *FLOATS[1:])),
}
INF, NAN = float("inf"), float("nan")

NO_OVERFLOW, OVERFLOW = {"allow_int_overflow": "False"}, {"allow_int_overflow": "True"}
NO_TRUNCATION = {"allow_float_truncate": "False"}
CHECKED = {"allow_int_overflow": "False", "allow_float_truncate": "False"}
TRUNCATED = {"allow_int_overflow": "False", "allow_float_truncate": "True"}
OVERFLOWN = {"allow_int_overflow": "True", "allow_float_truncate": "False"}
UNCHECKED = {"allow_int_overflow": "True", "allow_float_truncate": "True"}
STRICT = {"strict": "True", "wrap_numerical": "False"}
NULLS = {"strict": "False", "wrap_numerical": "False"}
WRAPS = {"strict": "True", "wrap_numerical": "True"}
CAST, TRY_CAST = {"function": "CAST"}, {"function": "TRY_CAST"}

ARROW, POLARS, DUCKDB = VERSIONS

PAGES = [
    (ARROW, CHECKED, "float64", "int8", {2.0: {2}, 2.5: "error", 300.0: "error", NAN: "error"}),
    (ARROW, TRUNCATED, "float64", "int8", {2.5: {2}, -2.5: {0xFE}, 300.0: "error", NAN: "open"}),
    (ARROW, OVERFLOWN, "float64", "int8", {2.0: {2}, 2.5: "error", 300.0: "open", NAN: "open"}),
    (ARROW, UNCHECKED, "float64", "int8", {2.5: {2}, 300.0: "open", -INF: "open"}),
    (ARROW, NO_OVERFLOW, "int16", "uint8", {255: {255}, 256: "error", -1: "error"}),
    (ARROW, OVERFLOW, "int16", "uint8", {255: {255}, 256: "open"}),
    (ARROW, NO_TRUNCATION, "int32", "float32", {5: {0x40A00000}, 2**24 + 1: "error"}),
    (ARROW, NO_TRUNCATION, "float64", "float32", {1e300: "error", 0.1: "open"}),
    (ARROW, {}, "float64", "bool", {0.0: {0}, 0.5: {1}, -3.0: {1}}),
    (POLARS, STRICT, "float64", "int32", {4.0: {4}, 5.8: {5}, -6.3: {2**32 - 6}, INF: "error"}),
    (POLARS, STRICT, "int64", "int8", {2: {2}, 10000002: "error"}),
    (POLARS, NULLS, "int64", "int8", {2: {2}, 30000003: "error"}),
    (POLARS, WRAPS, "int64", "uint8", {300: {44}, -1: {255}}),
    (POLARS, WRAPS, "float64", "uint8", {300.0: {44}, -1.5: {255}, NAN: "open"}),
    (POLARS, STRICT, "float64", "float32", {1e300: "error", 0.5: {0x3F000000}}),
    (POLARS, {}, "int64", "bool", {-1: {1}, 0: {0}, 4: {1}}),
    (POLARS, {}, "bool", "int32", {1: {1}, 0: {0}}),
    (DUCKDB, CAST, "float32", "int32", {2.5: {2}, 3.5: {4}, -1.75: {2**32 - 2}, INF: "error"}),
    (DUCKDB, CAST, "float64", "int8", {127.4: {127}, 127.5: "error", -128.5: {0x80}}),
    (DUCKDB, CAST, "int32", "int8", {99: {99}, 999: "error"}),
    (DUCKDB, TRY_CAST, "int32", "int8", {99: {99}, 999: "error"}),
    (DUCKDB, CAST, "float64", "float32", {1e300: "error", NAN: "a NaN"}),
    (DUCKDB, {}, "bool", "int32", {1: {1}}),
]  # fmt: skip


def code_of(dtype: str, value: float) -> int:
    if dtype in FLOATS:
        letter, whole = {"float16": "eH", "float32": "fI", "float64": "dQ"}[dtype]
        return int(struct.unpack(f"<{whole}", struct.pack(f"<{letter}", value))[0])
    return int(value) & (1 << int(dtype.lstrip("uint") or 1)) - 1 if dtype != "bool" else int(value)


def allowed(case: Case, code: int) -> set[int] | str:
    found = exact_rulings.allow(ruling(case), code)
    match found.branch.outcome:
        case Anything():
            return "open"
        case Rejected():
            return "error"
    return set(found.codes) or "a NaN"


@pytest.mark.parametrize("document", VERSIONS)
def test_the_cases_are_all_pairs_of_the_documents_types(document: str) -> None:
    cases = edition(document_named(document), VERSIONS[document]).cases()
    pairs = {(case.source, case.target) for case in cases}
    assert pairs == set(product(*SOURCES_AND_TARGETS[document]))


@pytest.mark.parametrize(("document", "modes", "source", "target", "answers"), PAGES)
def test_values_become_what_the_page_says(
    document: str,
    modes: dict[str, str],
    source: str,
    target: str,
    answers: dict[float, set[int] | str],
) -> None:
    case = Case(document, VERSIONS[document], source, target, tuple(modes.items()))
    assert case in set(edition(document_named(document), VERSIONS[document]).cases())
    for value, wanted in answers.items():
        assert allowed(case, code_of(source, value)) == wanted, value
