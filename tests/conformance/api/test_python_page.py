"""Every example of the pages about Python and of ``castigate.py`` works as it is shown."""

from __future__ import annotations

import doctest
import re
import sys
from pathlib import Path

import pytest

import castigate

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python.md"
TUTORIAL = ROOT / "docs" / "port_a_cast.md"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"`(\w+\.py)`:\n\n```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""A block that the page says to save."""


def failures(text: str, where: str) -> tuple[int, int, str]:
    """How many examples a text has, how many of them fail, and what is wrong."""
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    found = doctest.DocTestParser().get_doctest(text, {}, where, where, 0)
    told: list[str] = []
    runner.run(found, out=told.append)
    return runner.summarize(verbose=False).attempted, runner.failures, "".join(told)


@pytest.mark.parametrize(
    ("page", "least"), [(PAGE, 16), (TUTORIAL, 10)], ids=["python", "tutorial"]
)
def test_the_examples_of_the_page_work(
    page: Path, least: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = page.read_text(encoding="utf-8")
    for name, lines in FILE.findall(text):
        (tmp_path / name).write_text(lines, encoding="utf-8")
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    dialog = [block for block in BLOCK.findall(text) if block.startswith(">>>")]
    attempted, failed, told = failures("\n".join(dialog), page.name)
    assert not failed, told
    assert attempted >= least


def test_the_example_of_the_module_works() -> None:
    assert castigate.__doc__ is not None
    attempted, failed, told = failures(castigate.__doc__, "castigate.py")
    assert not failed, told
    assert attempted == 2


def test_a_wrong_example_fails() -> None:
    assert failures(">>> import castigate\n>>> len(castigate.formats())\n3\n", "here")[1] == 1


@pytest.mark.parametrize("name", castigate.__all__)
def test_the_page_shows_every_function(name: str) -> None:
    assert f".{name}" in PAGE.read_text(encoding="utf-8")
