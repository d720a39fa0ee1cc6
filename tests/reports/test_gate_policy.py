"""Policy files: those that ship, validation with file and line, and patterns."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import reports.gate.policy
from reports.case_patterns import any_matches, matches
from reports.gate.policy import (
    SHIPPED,
    json_schema,
    load_policy,
    policy_from_certificate,
    policy_named,
)
from specs.errors import CastigateError
from specs.model.yaml_file import read_yaml

SCHEMA = Path(reports.gate.policy.__file__).with_name("policy.schema.json")
NAMES = ("pull-request", "regression-only", "required-only", "strict")
GOOD = """\
policy: mine
title: One of our own
documents: ['onnx-cast:25']
levels: [required]
tier: quick
may-be-unsupported:
  - 'onnx-cast:25/string/**'
minimum-coverage:
  'onnx-cast:25/float32/**': 50
accepted:
  - cases: ['onnx-cast:25/float8e5m2/bool']
    rule: float-to-bool
    region: 0123456789abcdef
    reason: known
    expires: '2027-01-31'
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(text)
    return path


def test_shipped_policies_load_by_name() -> None:
    assert tuple(path.stem for path in sorted(SHIPPED.glob("*.yaml"))) == NAMES
    for name in NAMES:
        assert policy_named(name).name == name
    strict, required, regression, request = (policy_named(each).entry for each in reversed(NAMES))
    # What a stack declines does not count against it.
    assert (request.levels, request.may_be_unsupported) == (["required"], ["**"])
    assert request.minimum_coverage == {}
    assert (strict.levels, strict.may_be_unsupported) == (["required", "recommended"], [])
    assert strict.minimum_coverage == {"**": 100}
    assert required.levels == ["required"]
    assert [each.only_new for each in (strict, required, regression)] == [False, False, True]


def test_a_policy_that_chooses_cases_judges_each_by_its_first_entry(tmp_path: Path) -> None:
    chosen = "cases:\n  - match: ['**/float16']\n    tier: full\n    levels: [recommended]\n"
    policy = load_policy(written(tmp_path, f"{GOOD}{chosen}  - match: ['**/float32/*']\n"))
    assert [each.tier for each in policy.choices] == ["full", "quick"]
    assert policy.tier == "full"
    assert policy.levels_of("onnx-cast:25/float32/float16") == ["recommended"]
    assert policy.levels_of("onnx-cast:25/float32/int8") == ["required"]
    assert policy.levels_of("invariances/float32/float16") == ["recommended"]
    with pytest.raises(
        CastigateError, match=r"mine.yaml:17: pattern `\*\*/floot16` matches no case"
    ):
        load_policy(written(tmp_path, GOOD + chosen.replace("float16", "floot16")))


def test_shipped_schema_is_current_and_accepts_shipped_policies() -> None:
    assert SCHEMA.read_text() == json.dumps(json_schema(), indent=2) + "\n"
    jsonschema.Draft202012Validator.check_schema(json_schema())
    validator = jsonschema.Draft202012Validator(json_schema())
    for name in NAMES:
        data = read_yaml(SHIPPED / f"{name}.yaml").data
        assert list(validator.iter_errors(data)) == []
        assert not validator.is_valid(data | {"level": "required"})
        assert not validator.is_valid({**data, "levels": []})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("policy: mine", "policy: strict"), "mine.yaml:1: `strict` is the name of a policy that"),
        (
            ("rule: float-to-bool", "rule: float-to-boool"),
            "no document of the policy has a rule `float-to-boool`; did you mean `float-to-bool`?",
        ),
    ],
)
def test_names_of_policies_and_rules_are_checked(
    tmp_path: Path, change: tuple[str, str], message: str
) -> None:
    with pytest.raises(CastigateError, match=re.escape(message)):
        load_policy(written(tmp_path, GOOD.replace(*change)))


def test_a_certificate_whose_policy_borrows_a_name_does_not_hold() -> None:
    content = policy_named("strict").content
    assert policy_from_certificate(content, "c.json").name == "strict"
    with pytest.raises(CastigateError, match="its policy has the name `strict` of another one"):
        policy_from_certificate({**content, "may-be-unsupported": ["**"]}, "c.json")


@pytest.mark.parametrize("name", NAMES)
def test_any_change_of_a_shipped_policy_is_noticed(name: str) -> None:
    for limit in range(1, 9):  # so that some have a larger digest than the policy, some a smaller
        content = {**policy_named(name).content, "time-limit": limit}
        with pytest.raises(CastigateError, match=f"its policy has the name `{name}` of another"):
            policy_from_certificate(content, "c.json")


def test_digest_does_not_depend_on_comments_and_defaults(tmp_path: Path) -> None:
    one = load_policy(written(tmp_path, GOOD))
    again = load_policy(written(tmp_path, f"# a comment\n{GOOD}only-new: false\n"))
    other = load_policy(written(tmp_path, GOOD.replace("'2027-01-31'", "'2027-02-01'")))
    assert one.digest == again.digest != other.digest


WRONG: list[tuple[str, str, int, str]] = [
    ("levels: [required]", "levels: []", 4, "at least 1 item"),
    ("levels: [required]", "levels: [required, required]", 4, "`required` is listed twice"),
    ("onnx-cast:25']\nlevels", "onnx-cast:25', 'onnx-cast:25']\nlevels", 3, "is listed twice"),
    ("reason: known", f"reason: {'a' * 4001}", 14, "at most 4000 characters"),
    ("levels: [required]", "levels: [certain]", 4,
     "`levels` is `certain`, and must be 'required' or 'recommended'"),
    ("tier: quick", "tier: quick\nfoo: 1", 6, "unknown key `foo`"),
    ("tier: quick\n", "", 1, "`tier` is missing"),
    ("onnx-cast:25']\nlevels", "onyx-cast']\nlevels", 3, "did you mean `onnx-cast`?"),
    ("['onnx-cast:25']\nlevels", "[claimed]\nlevels", 3, "write `documents: claimed`, without"),
    ("float32/**': 50", "float32/float8e5m2': 50", 9,
        "did you mean `onnx-cast:25/float32/float8e5m2/**`?"),
    ("onnx-cast:25']\nlevels", "onnx-cast:']\nlevels", 3, "unknown document `onnx-cast:`; did you"),
    ("onnx-cast:25']\nlevels", "onnx-cast:26']\nlevels", 3, "has no version `26`"),
    ("/string/**", "/strings/**", 7, "`onnx-cast:25/strings/**` matches no case"),
    ("/string/**", "/{float16,strings}/**", 7, "`onnx-cast:25/strings/**` matches no case"),
    ("float32/**': 50", "float32/**': 101", 9, "less than or equal to 100"),
    ("float32/**': 50", "float32/**': 99.5", 9, "`99.5` is a YAML float"),
    ("float32/**': 50", "float33/**': 50", 9, "`onnx-cast:25/float33/**` matches no case"),
    ("float8e5m2/bool", "float8e5m2/boo", 11, "matches no case"),
    ("    rule: float-to-bool\n", "", 11, "either a `rule` or a `verdict`"),
    ("region: 0123", "region: x123", 13, "pattern"),
    ("    reason: known\n", "", 11, "`reason` is missing"),
    ("'2027-01-31'", "'2027-02-31'", 15, "`2027-02-31` is not a date"),
    ("'2027-01-31'", "'20270131'", 15, "`20270131` is not a date"),
    ("'2027-01-31'", "2027-01-31", 15, "quote it"),
    ("tier: quick", "tier: quick\nseed: '1'", 6, "must be a valid integer"),
    ("tier: quick", "tier: quick\nseed: true", 6, "must be a valid integer"),
    ("tier: quick", "tier: quick\nmax-examples: '100'", 6, "must be a valid integer"),
    ("tier: quick", "tier: quick\ntime-limit: true", 6, "must be a valid integer"),
    ("tier: quick", "tier: quick\nonly-new: 'true'", 6, "must be a valid boolean"),
    ("tier: quick", "tier: quick\nonly-new: 1", 6, "must be a valid boolean"),
    ("float32/**': 50", "float32/**': true", 9, "must be a valid integer"),
    ("float32/**': 50", "float32/**': '50'", 9, "must be a valid integer"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message"), WRONG)
def test_errors_name_file_and_line(
    old: str, new: str, line: int, message: str, tmp_path: Path
) -> None:
    load_policy(written(tmp_path, GOOD))
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new))
    with pytest.raises(CastigateError) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 1, "a policy begins with `policy: NAME`"),
        (
            GOOD.replace("['onnx-cast:25']", "onnx-cast:25"),
            3,
            "`onnx-cast:25` is no list; write `documents: ['onnx-cast:25']`, or `claimed`",
        ),
        (GOOD.replace("': 50", "': 10.5"), 9, "if it is text, or write a whole number"),
    ],
)
def test_hints_are_about_policies(text: str, line: int, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(CastigateError) as caught:
        load_policy(path)
    assert str(caught.value).startswith(f"{path}:{line}: ")
    assert str(caught.value).endswith(message)


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("strickt", "unknown policy `strickt`; did you mean `strict`?"),
        ("no/such.yaml", "no/such.yaml: there is no such file"),
    ],
)
def test_an_unknown_policy_is_an_error_of_one_line(word: str, message: str) -> None:
    with pytest.raises(CastigateError) as caught:
        policy_named(word)
    assert str(caught.value).startswith(message)


CASE = "onnx-cast:25/float32/float8e4m3fn/saturate:0"
MATCHES: dict[str, bool] = {
    "**": True,
    "*": False,
    CASE: True,
    CASE[:-1]: False,
    "onnx-cast:*/float32/**": True,
    "onnx-cast:25/float*/float8*/*": True,
    "onnx-cast:25/float*": False,
    "onnx-cast.25/**": False,
    "**/saturate:0": True,
}


@pytest.mark.parametrize("pattern", MATCHES)
def test_patterns_match_whole_case_ids(pattern: str) -> None:
    assert matches(pattern, CASE) == MATCHES[pattern]
    assert any_matches(["nothing", pattern], CASE) == MATCHES[pattern]


def test_a_policy_can_be_read_from_its_content() -> None:
    content: Any = json.loads(json.dumps(policy_named("strict").content))
    again = policy_from_certificate(content, "x")
    assert again.digest == policy_named("strict").digest
    with pytest.raises(CastigateError, match=r"x: `policy\.content\.seed`"):
        policy_from_certificate(content | {"seed": -1}, "x")
