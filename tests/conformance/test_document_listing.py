"""``specs --json`` lists documents for programs; docs/documents.md has its keys."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from pydantic import BaseModel

from conformance.commands.document_listing import (
    CaseListing,
    DocumentListing,
    RuleListing,
    VersionListing,
)
from specs.loader import documents
from specs.selection import select
from tests.conformance.processes import ROOT, castigate


def listed(*arguments: str) -> list[dict[str, Any]]:
    code, out, err = castigate("specs", "--json", *arguments)
    assert (code, err) == (0, "")
    for line in out.splitlines():
        DocumentListing.model_validate_json(line)
    return [json.loads(line) for line in out.splitlines()]


def test_every_document_is_listed_with_its_counts() -> None:
    found = listed()
    assert [each["document"] for each in found] == list(documents())
    for each in found:
        assert each["cases"] == len(select([each["document"]]))
        assert each["cases"] == sum(version["cases"] for version in each["versions"])
        assert not {"rules", "case_list"} & set(each)


@pytest.mark.parametrize("name", documents())
def test_a_documents_cases_are_those_of_a_run_and_their_rules_are_listed(name: str) -> None:
    [found] = listed(name)
    cases = found["case_list"]
    assert {case["case"] for case in cases} == {case.id for case in select([name])}
    rules = {rule["rule"] for rule in found["rules"]}
    assert {rule for case in cases for rule in case["rules"]} <= rules


def test_one_version_has_only_its_own_cases_and_parameters() -> None:
    [found] = listed("pypto-cast:seed")
    assert [version["version"] for version in found["versions"]] == ["seed"]
    assert set(found["versions"][0]["parameters"]) == {"mode"}
    assert found["cases"] == len(found["case_list"]) == len(select(["pypto-cast:seed"]))
    [one] = [
        case
        for case in found["case_list"]
        if case["case"] == "pypto-cast:seed/float32/float16/mode:CAST_ODD"
    ]
    assert one["mode"] == {"mode": "CAST_ODD"}
    assert not one["is_rejection"]


@pytest.mark.parametrize("arguments", [("lint",), ("schema",), ("--coverage", "cinn-cast")])
def test_json_is_refused_where_it_has_no_meaning(arguments: tuple[str, ...]) -> None:
    code, out, err = castigate("specs", "--json", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)


ROWS: dict[str, type[BaseModel]] = {
    "document": DocumentListing,
    "one of `versions`": VersionListing,
    "one of `rules`": RuleListing,
    "one of `case_list`": CaseListing,
}


@pytest.mark.parametrize("row", ROWS)
def test_the_page_names_every_key(row: str) -> None:
    page = (ROOT / "docs" / "documents.md").read_text(encoding="utf-8")
    [text] = re.findall(rf"^\| {re.escape(row)} \| (.*) \|$", page, re.M)
    keys = re.findall(r"`([\w]+)`", re.sub(r"\([^)]*\)", "", text))
    assert keys == list(ROWS[row].model_fields)
