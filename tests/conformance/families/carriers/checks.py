"""Helpers of the tests of carriers: cases by short names, and the answers that documents allow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from oracles.reference.exact_rulings import allow
from specs.cases import CARRIER, Case
from specs.loader import document_named
from specs.outcomes import Anything, Nan
from specs.ruling import ruling
from specs.selection import case_named, select
from tests.adapters.common import bits_of


def carrier_case(edition: str, words: str) -> Case:
    """Return the case of ``source/target/carrier`` in an edition ``DOCUMENT:VERSION``."""
    source, target, carrier = words.split("/")
    return case_named(f"{edition}/{source}/{target}/{CARRIER}:{carrier}")


def assert_same_carriers(document: str, table: Iterable[str]) -> None:
    """A document lists the carriers of a table, and has a case of each."""
    carriers = set(table)
    listed = document_named(document).entry.parameters[CARRIER].values
    assert set(map(str, listed)) == carriers
    assert {case.mode[CARRIER] for case in select([document])} == carriers


def allowed_by_document(case: Case, code: int) -> tuple[set[int] | str, str]:
    """Return the allowed answers to an input, ``open`` or ``nan``, and the level of the rule."""
    found = allow(ruling(case), code)
    match found.branch.outcome:
        case Anything():
            return "open", found.branch.level
        case Nan():
            return "nan", found.branch.level
    return {*found.codes}, found.branch.level


def assert_carries(oracle: Any, case: Case, given: list[int], answers: list[int]) -> None:
    """An oracle carries patterns of the source to these patterns of the target."""
    found = oracle.carry(case, bits_of(case.source, given))
    assert found.tolist() == bits_of(case.target, answers).tolist()
