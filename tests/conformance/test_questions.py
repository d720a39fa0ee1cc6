"""Questions in people's words are answered in the first line, in eight lines at most.

``data/questions.yaml`` has the questions, and answers that do not come from Castigate.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from unittest.mock import patch

import pytest
from pydantic import TypeAdapter
from yaml import safe_load

from specs.model.strict_model import StrictModel
from tests.conformance.processes import castigate

MOST_LINES = 8
FEWEST, FEWEST_OF_THREADS = 60, 30
THREAD = re.compile(r"[\w.-]+/[\w.-]+#\d+")


class Asked(StrictModel):
    """A question as typed behind ``castigate explain``, and what its first line must say."""

    ask: str
    says: list[str]
    why: str
    thread: str = ""


FILE = Path(__file__).with_name("data") / "questions.yaml"
QUESTIONS = TypeAdapter(list[Asked]).validate_python(safe_load(FILE.read_text("utf-8")))


def is_said(word: str, line: str) -> bool:
    """Whether a line has a word or number as a whole."""
    return re.search(rf"(?<![\w.'-]){re.escape(word)}(?![\w']|\.\d)", line) is not None


@pytest.mark.parametrize("asked", QUESTIONS, ids=[each.ask for each in QUESTIONS])
def test_the_first_line_answers(asked: Asked) -> None:
    # The answers are those of the table: what is installed here is not asked.
    with patch("conformance.commands.explain.outdated", list):
        code, out, err = castigate("explain", *shlex.split(asked.ask))
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert len(lines) <= MOST_LINES, out
    question, _, answer = lines[0].partition(": ")
    assert question
    assert [word for word in asked.says if not is_said(word, answer)] == [], lines[0]


def test_there_are_enough_questions_and_none_twice() -> None:
    threads = [each.thread for each in QUESTIONS if each.thread]
    assert len({each.ask for each in QUESTIONS}) == len(QUESTIONS) >= FEWEST
    assert len({*threads}) >= FEWEST_OF_THREADS
    assert all(map(THREAD.fullmatch, threads))


@pytest.mark.parametrize(
    ("word", "line", "expected"),
    [
        ("0", "0 from jax; -2147483648 from torch", True),
        ("0", "-0 from jax; 10 from torch; 0.5 from ort", False),
        ("44", "44 from torch", True),
        ("44", "448 from torch", False),
        ("128", "-128 from jax", False),
        ("'0.1'", "a text, such as '0.1', is recommended", True),
    ],
)
def test_a_number_counts_as_a_whole_only(word: str, line: str, expected: bool) -> None:
    assert is_said(word, line) == expected
