"""Findings name the threads of the docket about them, and what the owners intend."""

from __future__ import annotations

from pathlib import Path

import pytest

from oracles.registry import BUILTINS
from reports.findings import finding as finding_module
from reports.ledger.ledger_file import load_ledger
from specs.errors import DocumentError


def test_every_link_is_of_a_backend_and_ledgers_name_it() -> None:
    for name, link in finding_module.upstream_links().items():
        backend, _, finding = name.partition("/")
        assert backend in BUILTINS
        assert finding_module.upstream_of(f"{backend}:variant", finding) == link
        ledger = load_ledger(backend)
        if ledger is not None and finding in ledger.findings:
            assert ledger.findings[finding].upstream == link
    assert finding_module.upstream_of("ort", "nothing") is None


def test_the_docket_links_findings() -> None:
    links = finding_module.upstream_links()
    assert links["onnx/as-version-24"] == "https://github.com/onnx/onnx/issues/6220"
    assert links["ort/as-version-24"] == links["onnx/as-version-24"]
    assert len(links) >= 8


@pytest.mark.parametrize("text", ["ort: a place\n", "ort/a: ''\n", "- a\n"])
def test_a_mistake_is_one_line_with_its_place(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "intended.yaml"
    file.write_text(text)
    monkeypatch.setattr(finding_module, "INTENDED_FILE", file)
    with pytest.raises(DocumentError) as error:
        finding_module.intended_places.__wrapped__()
    assert str(error.value).startswith(f"{file}:1: ")
    assert "\n" not in str(error.value)


def test_what_owners_intend_is_said_of_every_variant() -> None:
    for name, place in finding_module.intended_places().items():
        backend, _, finding = name.partition("/")
        assert backend in BUILTINS
        assert finding_module.intended_of(f"{backend}:compile", finding) == place
    assert finding_module.intended_of("ort", "drops-float-on-the-way") is None
