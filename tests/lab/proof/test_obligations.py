"""Obligations that processes prove are reported and returned in the order of their tasks."""

from __future__ import annotations

from lab.proof.obligations import Obligation, prove_in_parallel

NAMES = ("d", "a", "c", "b", "f", "e")


def prove_name(name: str) -> Obligation:
    return Obligation("exhaustion", "int8", "int4", "wrap", name, "", "proved", "1", 0.0)


def test_obligations_proved_in_parallel_are_in_order() -> None:
    reported: list[str] = []
    proved = prove_in_parallel(prove_name, NAMES, 2, lambda one: reported.append(one.rulings))
    assert [one.rulings for one in proved] == reported == list(NAMES)
