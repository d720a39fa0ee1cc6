"""The notebook is executed by Jupyter's client, and prints what it stores.

``REWRITE_DOCS=1 pytest tests/conformance/api/test_notebook.py`` stores the real outputs.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
NOTEBOOK = ROOT / "examples" / "notebook.ipynb"

nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")


@pytest.fixture
def executed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The notebook after its cells have run in a kernel of this Python."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    for variable in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    where = {"metadata": {"path": str(tmp_path)}}
    nbclient.NotebookClient(notebook, timeout=300, record_timing=False, resources=where).execute()
    return notebook


def texts(notebook: Any) -> list[list[str]]:
    """Return, for each code cell, the texts that it prints and returns."""
    return [
        [each.get("text") or each["data"]["text/plain"] for each in cell.outputs]
        for cell in notebook.cells
        if cell.cell_type == "code"
    ]


def test_the_notebook_prints_what_it_stores(executed: Any) -> None:
    if os.environ.get("REWRITE_DOCS"):
        executed.metadata.language_info = {"name": "python"}  # not this Python's version
        nbformat.write(executed, NOTEBOOK)
    stored = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(stored)
    assert texts(executed) == texts(stored)


def test_the_notebook_shows_each_kind_of_question() -> None:
    source = NOTEBOOK.read_text(encoding="utf-8")
    asked = ("cast", "explain", "check", "portable", "check_checkpoint")
    assert [name for name in asked if f"cg.{name}(" not in source] == []
    assert ".to_arrow()" in source
