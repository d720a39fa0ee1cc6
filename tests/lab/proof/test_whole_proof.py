"""The whole proof by solver: every ruling of every document, every input."""

from __future__ import annotations

import pytest

pytest.importorskip("bitwuzla")

from lab.proof.smt_queries import prove_by_solver

pytestmark = pytest.mark.nightly  # `tox -e proof` runs it, too


def test_the_solver_proves_every_ruling() -> None:
    obligations = prove_by_solver(jobs=2)
    assert [str(one) for one in obligations if one.verdict != "proved"] == []
    assert len(obligations) > 800
