"""Rules without a page: they are total and unambiguous, and no backend is judged by them."""

from __future__ import annotations

import numpy as np
import pytest

from conformance.families.cast.quick_inputs import few_patterns
from oracles.reference import expect_by_exact, expect_by_kernels
from oracles.reference.chain_ends import Ends, ends
from specs.chains import chain_named
from specs.editions import edition, editions
from specs.errors import CastigateError
from specs.lint import prove
from specs.loader import document_named, documents, yardsticks
from specs.ruling import ruling
from specs.selection import select
from tests.reference.thinned import thinned

EDITIONS = [
    ("plain-cast", "open"),
    ("plain-cast", "wraps"),
    ("plain-cast", "saturates"),
    ("checked-cast", "1"),
]


def test_a_yardstick_is_proved_as_documents_are() -> None:
    for yardstick in yardsticks().values():
        proof = prove(yardstick)
        assert proof.cases == sum(len([*each.cases()]) for each in editions(yardstick))


@pytest.mark.ci_runs_one_of(3)
@pytest.mark.parametrize(("yardstick", "version"), EDITIONS)
def test_definition_and_kernels_agree_on_every_pair(yardstick: str, version: str) -> None:
    for case in edition(document_named(yardstick), version).cases():
        rules = ruling(case)
        inputs = thinned(few_patterns(case.source, case.target, 200), 500)
        found = expect_by_kernels.expect(rules, inputs)
        expected = expect_by_exact.expect(rules, inputs)
        for name in ("branch_indices", "codes", "others"):
            mine, other = getattr(found, name), getattr(expected, name)
            np.testing.assert_array_equal(mine, other, f"{case} {name}")


@pytest.mark.parametrize(
    ("path", "code", "answers"),
    [
        # 300 is 0x12c, and has 44 in its low byte.
        ("float32/int8/int32", 0x43960000, {"wraps": 44, "saturates": 127}),
        ("float32/int8/int32", 0xC3960000, {"wraps": 0xFFFFFFD4, "saturates": 0xFFFFFF80}),
        ("float32/uint8/int32", 0x7FC00000, {"wraps": 0, "saturates": 0}),  # NaN
        ("float32/uint8/int32", 0x7F800000, {"wraps": 0, "saturates": 255}),  # infinity
    ],
)
def test_what_becomes_of_a_float_out_of_range(
    path: str, code: int, answers: dict[str, int]
) -> None:
    assert ends(chain_named(f"plain-cast:open/{path}").rulings, code).is_open
    for version, answer in answers.items():
        found = ends(chain_named(f"plain-cast:{version}/{path}").rulings, code)
        assert found == Ends(frozenset([answer]))


@pytest.mark.parametrize(
    ("edition_name", "command"),
    [("plain-cast:wraps", "chains plain-cast"), ("checked-cast:1", "docket")],
)
def test_no_backend_is_judged_by_a_yardstick(edition_name: str, command: str) -> None:
    name = edition_name.partition(":")[0]
    assert name not in documents()
    assert document_named(name) is yardsticks()[name]
    said = rf"is no document but a yardstick, .* use castigate {command}$"
    with pytest.raises(CastigateError, match=said):
        select([edition_name])
