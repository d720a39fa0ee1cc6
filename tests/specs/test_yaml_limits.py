"""YAML that is too large, too deep, repeats too much or is no text is refused by one line.

JSON from outside may not be nested too deep either.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.errors import DocumentError
from specs.json_source import JsonError, parse_json
from specs.model.yaml_file import read_yaml
from specs.plain_text import LONGEST_LINE

BOMB = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 9)
)
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 60))
TOO_MANY = "the file has more than 100,000 keys and values, counting what aliases repeat"
TOO_DEEP = "the file is nested more than 50 levels deep"
REFUSED = {
    "a bomb of aliases": (BOMB, f": {TOO_MANY}"),
    "a chain of aliases": (CHAIN, f": {TOO_DEEP}"),
    "a list without end": ("a: " + "[" * 100_000, f":1: {TOO_DEEP}"),
    "lists in lists": ("- " * 100 + "x", f":1: {TOO_DEEP}"),
    "a large file": ("".join(f"r{n}: {{clause: a}}\n" for n in range(150_000)),
        ": the file has more than 2 MiB; split it, or remove what is not needed"),
    "an anchor twice": ("a: &x 1\nb: &x 2\n",
        ":2: anchor `x` is on line 1 already; rename one of the two"),
    "half a surrogate pair": ('a: "\\ud800"\n', ":1: `\\ud800` holds the character U+D800"),
    "half a surrogate pair as key": ('"\\udfff": 1\n', ":1: `\\udfff` holds the character U+DFFF"),
    "an escape sequence": ('a: "\\e[31m"\n', ":1: `\\u001b[31m` holds the character U+001B"),
    "a character beyond Unicode": ('a: "\\U00110000"\n', ":1: not YAML: "),
    "a huge key twice": (f"? {'k' * 9_000}\n: 1\n? {'k' * 9_000}\n: 1\n", ":3: `kkk"),
    "a huge float": (f"a: {'1' * 9_000}.5\n", ":1: `111"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED.values(), ids=REFUSED)
@pytest.mark.filterwarnings("error")
def test_what_cannot_be_read_is_one_line(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    with pytest.raises(DocumentError) as error:
        read_yaml(path)
    line = str(error.value)
    assert message in line
    assert line.startswith(f"{path}:")
    assert len(line) < LONGEST_LINE


def test_many_plain_nodes_are_refused_by_their_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specs.model.yaml_parser.MAX_NODES", 100)
    path = tmp_path / "file.yaml"
    path.write_text("- a\n" * 200)
    with pytest.raises(DocumentError, match=rf"file.yaml:100: {TOO_MANY}"):
        read_yaml(path)


def test_aliases_within_the_limits_are_read(tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("a: &x [1, 2]\nb: *x\n")
    assert read_yaml(path).data == {"a": [1, 2], "b": [1, 2]}


def test_what_aliases_repeat_counts_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.yaml"
    path.write_text("- &x [1, 2, 3]\n- *x\n- *x\n")
    # One list of three lists of three values.
    monkeypatch.setattr("specs.model.yaml_parser.MAX_NODES", 13)
    assert read_yaml(path).data == [[1, 2, 3]] * 3
    monkeypatch.setattr("specs.model.yaml_parser.MAX_NODES", 12)
    with pytest.raises(DocumentError, match=TOO_MANY):
        read_yaml(path)


def test_json_is_read_down_to_a_hundred_levels() -> None:
    assert parse_json(b"1") == 1
    assert parse_json(b'{"a": [1, 2]}') == {"a": [1, 2]}
    parse_json(b"[" * 100 + b"]" * 100)
    with pytest.raises(JsonError, match="nested more than 100 levels deep"):
        parse_json(b"[" * 101 + b"]" * 101)
