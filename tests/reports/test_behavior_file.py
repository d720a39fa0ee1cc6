"""The file of behaviors is read, or rejected with one line that says where and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.behaviors import BEHAVIORS_FILE, behaviors, load_behaviors
from specs.errors import CastigateError

VALID = """\
wrap:
  says: keep the low bits
  from: [float]
  to: [integer]
  steps: [truncate, low-bits]
"""
STEPS = "steps: [truncate, low-bits]"
INTO = "into: int32, above: zero, below: zero, nan: zero"


def test_shipped_behaviors_have_distinct_names_and_sentences() -> None:
    forms = behaviors()
    assert list(forms) == [form.name for form in forms.values()]
    assert len({form.says for form in forms.values() if form.to == ("integer",)}) == sum(
        form.to == ("integer",) for form in forms.values()
    )


@pytest.mark.parametrize(
    "step", ["flush-subnormals", "drop-sign", "via:", "into:", "up-to:", "fits:"]
)
def test_the_head_of_the_file_explains_every_step(step: str) -> None:
    header = BEHAVIORS_FILE.read_text(encoding="utf-8").partition("\n\n")[0]
    assert step.removesuffix(":") in header


@pytest.mark.parametrize(
    ("old", "new", "line", "expected"),
    [
        ("low-bits", "low-bit", 5, "`low-bit` is no step; did you mean `low-bits`?"),
        (STEPS, "steps: low-bits", 5, "must be a valid tuple"),
        (STEPS, "steps: [low-bits]", 1, "it is not said how it rounds"),
        (STEPS, "steps: [truncate]", 1, "exactly one step makes the answer"),
        (STEPS, "steps: [truncate, low-bits, saturate]", 1, "exactly one step makes the answer"),
        (STEPS, "steps: [truncate, low-bits, drop-sign]", 1, "after the answer only"),
        (STEPS, "steps: [{nan: zero}, truncate, low-bits]", 1, "stands after the step"),
        (STEPS, f"steps: [truncate, {{{INTO}}}, low-bits, {{nan: no}}]", 5, "is no step"),
        ("truncate", "{via: int8}", 5, "`int8` has no infinity"),
        ("truncate", "{via: float33}", 5, "unknown dtype `float33`; did you mean `float32`?"),
        ("truncate", f"truncate, {{{INTO.replace('int32', 'float32')}}}", 5, "is no integer"),
        ("truncate", f"truncate, {{{INTO[:-4]}nearest}}", 5, "a NaN has no `nearest`"),
        ("truncate", f"truncate, {{{INTO}, up-to: uint64}}", 5, "has not the width of `int32`"),
        ("  says: keep the low bits\n", "", 1, "`says` is missing"),
        ("low bits", "low bits.", 1, "without a full stop"),
        ("from: [float]", "from: [floats]", 3, "must be"),
        ("wrap:", "Wrap it:", 1, "a name is lower-case words"),
        (VALID, "wrap: [truncate]\n", 1, "a form is a mapping"),
        (VALID, "- wrap\n", 1, "maps names to forms"),
        (VALID, VALID + VALID.replace("wrap", "again"), 6, "`wrap` has the same steps"),
        ("[float]", "[1.5]", 3, "YAML float"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, expected: str
) -> None:
    path = tmp_path / "forms.yaml"
    path.write_text(VALID.replace(old, new), encoding="utf-8")
    assert VALID.replace(old, new) != VALID
    with pytest.raises(CastigateError) as error:
        load_behaviors(path)
    message = str(error.value)
    assert message.startswith(f"{path}:{line}: ")
    assert expected in message
    assert "\n" not in message
