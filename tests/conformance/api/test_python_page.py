"""Every example of docs/python.md, of ``castigate.py`` and of the notebook works as it is shown."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import castigate

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "python.md"
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.IGNORE_EXCEPTION_DETAIL
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def failures(text: str, where: str) -> tuple[int, int, str]:
    """How many examples a text has, how many of them fail, and what is wrong."""
    runner = doctest.DocTestRunner(optionflags=OPTIONS)
    found = doctest.DocTestParser().get_doctest(text, {}, where, where, 0)
    told: list[str] = []
    runner.run(found, out=told.append)
    return runner.summarize(verbose=False).attempted, runner.failures, "".join(told)


def test_the_examples_of_the_page_work() -> None:
    blocks = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    attempted, failed, told = failures("\n".join(blocks), "python.md")
    assert not failed, told
    assert attempted > 15


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
