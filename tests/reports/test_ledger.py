"""Ledgers: patterns, versions, comparison, updates, and mistakes in files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports import ledger
from reports.case_patterns import compress, expand, ids_of, matches
from reports.findings.finding import ExplainedCase, Finding
from reports.findings.judged_cells import cell_of
from reports.judgement import Judgement
from reports.known_failures import KnownFailure, parse_failure
from reports.ledger import ledger_file
from reports.ledger.ledger_file import load_ledger, path_of, read_ledger
from reports.ledger.listing import (
    InputOptions,
    KnownFinding,
    Ledger,
    ListedFailure,
    compare_with_listings,
)
from reports.ledger.update import update_ledger, write_ledger
from reports.ledger.version_spans import Span, version_order
from specs.errors import CastigateError, DocumentError
from specs.selection import case_named

CASE = "onnx-cast:25/float16/int8"
OTHER = "onnx-cast:25/float16/int16"
BYTE = "onnx-cast:25/float8e5m2/bool"
OPTIONS = InputOptions()
CELL = cell_of(case_named(CASE), Judgement(CASE, "b", "violates"), ())


KNOWN = KnownFinding("wrong value", "wraps")
WRAPS = ("wraps",)


def failure(what: str = "violates", region: str = "0" * 16, inputs: int = 1) -> KnownFailure:
    return KnownFailure(what, inputs, region)


def finding(*cases: str, name: str = "wraps") -> Finding:
    """A finding that explains some cases."""
    explained = tuple(
        ExplainedCase(
            replace(CELL, case=case), "a", "1", "required", 1, True, "", "0x0001", "0x02", ("0x03",)
        )
        for case in cases
    )
    return Finding(name, "b", "wrong value", "wraps", explained)


# Patterns


def test_a_star_matches_within_one_part_of_an_id() -> None:
    assert expand("onnx-cast:25/float16/int8") == ["onnx-cast:25/float16/int8"]
    assert expand("onnx-cast:2*/float16/int8") == [
        f"onnx-cast:{version}/float16/int8" for version in (21, 23, 24, 25)
    ]
    assert expand("onnx-cast:25/float16/float8e5m2/saturate:*") == [
        f"onnx-cast:25/float16/float8e5m2/saturate:{value}" for value in (1, 0)
    ]
    assert expand("onnx-cast:25/*") == []
    assert expand("invariances/float16/int8") == ["invariances/float16/int8"]
    assert len(expand("invariances/float16/*")) > 20
    assert expand("nothing:25/float16/int8") == expand("onnx-cast:25/float16/int9") == []


def test_two_stars_match_across_parts_of_an_id() -> None:
    prefix = "onnx-cast:25/float16/float8e5m2"
    assert expand(f"{prefix}/**") == expand(f"{prefix}/saturate:*") != []
    assert expand("onnx-cast:25/**/int8") == expand("onnx-cast:25/*/int8") != []
    assert expand("onnx-cast:25/**") == [
        name for name in ids_of("onnx-cast") if matches("onnx-cast:25/**", name)
    ]
    assert matches("**/int8", CASE)
    assert not matches("*/int8", CASE)


PATTERN_LISTS = [
    ["onnx-cast:*/float16/int8"],
    ["onnx-cast:25/*/int8"],
    ["onnx-cast:24/float16/int8", "onnx-cast:25/float16/int16"],
    ["onnx-cast:25/float16/float8e5m2/saturate:1"],
    ["onnx-cast:*/float16/float8e5m2/saturate:0", "pypto-cast:*/float16/float32"],
    ["onnx-cast:25/*/*"],
]


@pytest.mark.parametrize("patterns", PATTERN_LISTS)
def test_compressed_patterns_stand_for_exactly_the_cases(patterns: list[str]) -> None:
    cases = {case for pattern in patterns for case in expand(pattern)}
    found = compress(cases)
    expanded = [case for pattern in found for case in expand(pattern)]
    assert sorted(expanded) == sorted(cases)
    assert compress(sorted(cases, reverse=True)) == found
    assert all(matches(pattern, case) for pattern in found for case in expand(pattern))


@given(st.sets(st.sampled_from(expand("onnx-cast:2*/float*/float8e5m2/saturate:*")), min_size=1))
def test_any_cases_are_compressed_to_exactly_these(cases: set[str]) -> None:
    expanded = [case for pattern in compress(cases) for case in expand(pattern)]
    assert sorted(expanded) == sorted(cases)


def test_versions_and_dtypes_share_a_pattern() -> None:
    pattern = "onnx-cast:{19,25}/{float16,float32}/float8e5m2/saturate:{0,1}"
    assert len(expand(pattern)) == 8
    assert compress(expand(pattern)) == [pattern]


def test_documents_share_a_pattern() -> None:
    pattern = "{onnx-cast,onnx-cast-like}:{24,25}/float16/float8e5m2/saturate:0"
    assert len(expand(pattern)) == 4
    assert compress(expand(pattern)) == [pattern]


# Versions


def test_versions_sort_by_their_numbers_and_suffixes() -> None:
    rising = ["1.9", "1.10.0.dev3", "1.10.0rc1", "1.10.0", "1.10.0.post1", "1.10.1", "2"]
    assert sorted(set(rising), key=version_order) == rising
    assert version_order("2.13.0+cpu") == version_order("2.13.0+cu128") == version_order("2.13.0")


def test_a_span_contains_the_versions_between_its_ends() -> None:
    span = Span.of("1.9 to 1.11.2")
    assert all(version in span for version in ("1.9", "1.10.7", "1.11.2+cpu"))
    assert not any(version in span for version in ("1.8.9", "1.11.3", "1.9rc1"))
    assert "1.9" not in Span.of("1.10")


@pytest.mark.parametrize("text", ["1.9 to 1.8", " to 1", "1 to "])
def test_a_text_that_is_not_a_span_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="version"):
        Span.of(text)


# Comparison


@pytest.mark.parametrize(("inputs", "counted"), [(1, "1 input"), (2, "2 inputs")])
def test_what_is_not_listed_is_named_with_its_inputs(inputs: int, counted: str) -> None:
    compared = compare_with_listings([], [failure(inputs=inputs)], "violates")
    assert compared is not None
    assert compared.message == f"unlisted: violates ({counted})"


def test_a_case_is_known_only_if_every_failure_is_listed_as_found() -> None:
    listed = [
        ListedFailure(failure(each), Span.of("1"), WRAPS) for each in ("violates", "deviates")
    ]
    same = [failure("violates"), failure("deviates")]

    def status(found: list[KnownFailure]) -> str:
        compared = compare_with_listings(listed, found, "violates")
        assert compared is not None
        assert compared.findings == WRAPS
        return compared.status

    assert status(same) == "known"
    assert status([]) == "stale"
    for found in (same[:1], [failure("error")], [same[0], failure("deviates", "1" * 16)]):
        assert status(found) == "changed"
    assert compare_with_listings([], [], "conforms") is None
    assert compare_with_listings(listed, [], "not-run") is None


def test_what_varies_is_known_whatever_the_answers_and_must_still_fail() -> None:
    varying = KnownFailure("violates")
    listed = [ListedFailure(varying, Span.of("1"), WRAPS)]

    def status(*found: KnownFailure) -> str:
        compared = compare_with_listings(listed, found, "violates")
        assert compared is not None
        return compared.status

    assert status(failure()) == status(failure(region="1" * 16, inputs=7)) == "known"
    assert status() == "stale"
    assert status(failure("deviates")) == status(failure(), failure("deviates")) == "changed"
    assert str(varying) == "violates varies"
    assert parse_failure("violates varies") == varying


# Updates


def spans(ledger: Ledger) -> list[tuple[str, str]]:
    return [(str(each.span), each.failure.region[0]) for each in ledger.listings.get(CASE, ())]


def updated(
    before: Ledger | None, version: str, found: dict[str, list[KnownFailure]], *findings: Finding
) -> Ledger:
    explained = findings or ([finding(*found)] if found else [])
    return update_ledger(before, "b", version, OPTIONS, found, explained)


def test_an_update_joins_versions_that_fail_alike_and_keeps_what_others_have() -> None:
    first = updated(None, "1.0+cpu", {CASE: [failure()], OTHER: [failure()]})
    then = updated(first, "1.2", {CASE: [failure()]})
    assert spans(then) == [("1.0 to 1.2", "0")]
    assert [str(each.span) for each in then.listings[OTHER]] == ["1.0"]
    assert spans(updated(then, "1.2", {})) == [("1.0", "0")]
    between = updated(then, "1.1", {OTHER: [failure()]})
    assert spans(between) == [("1.0", "0"), ("1.2", "0")]
    assert [str(each.span) for each in between.listings[OTHER]] == ["1.0 to 1.1"]
    assert between.versions == ("1.0", "1.1", "1.2")


def test_an_update_never_lists_a_case_twice_for_a_version() -> None:
    first = updated(None, "1.0", {CASE: [failure(region="a" * 16)]})
    then = updated(first, "2.0", {CASE: [failure(region="b" * 16)]})
    assert spans(then) == [("1.0", "a"), ("2.0", "b")]
    third = updated(then, "3.0", {CASE: [failure(region="a" * 16)]})
    assert spans(third) == [("1.0", "a"), ("2.0", "b"), ("3.0", "a")]
    back = updated(third, "2.0", {CASE: [failure(region="a" * 16)]})
    assert spans(back) == [("1.0 to 3.0", "a")]


def test_a_version_of_its_own_has_its_entries_and_others_those_of_the_nearest() -> None:
    first = updated(None, "1.10", {CASE: [failure(region="a" * 16)]})
    ledger = updated(first, "1.20", {CASE: [failure(region="b" * 16)]})

    def applied(version: str, *, exactly: bool = False) -> tuple[str, list[str]]:
        used = ledger.applied_to(version, OPTIONS, exactly=exactly)
        return used.base, [each.failure.region[0] for each in used.at(CASE, [])]

    assert applied("1.10+cpu") == ("1.10", ["a"])
    assert applied("1.9") == applied("1.19") == ("1.10", ["a"])
    assert applied("1.20.1") == applied("2.0+cu128") == ("1.20", ["b"])
    assert applied("1.20.1", exactly=True) == ("1.20.1", [])
    mended = updated(ledger, "1.30", {})
    assert mended.applied_to("1.31", OPTIONS).at(CASE, []) == []
    assert mended.applied_to("1.29", OPTIONS).base == "1.20"


def test_an_update_keeps_links_and_tells_findings_anew() -> None:
    link = "https://example.org/1"
    known = replace(KNOWN, says="before", upstream=link)
    listings = {CASE: [ListedFailure(failure(), Span.of("1"), WRAPS)]}
    old = Ledger("b", OPTIONS, {"wraps": known}, listings, ("1",))
    then = updated(old, "1", {CASE: [failure(region="1" * 16)], OTHER: [failure()]})
    assert then.findings["wraps"].upstream == link
    assert then.findings["wraps"].says == "wraps"
    assert then.findings["wraps"].example.startswith("0x0001 (")
    moved = updated(old, "1", {CASE: [failure()]}, finding(CASE, name="other"))
    assert [each.findings for each in moved.listings[CASE]] == [("other",)]


def test_an_update_keeps_what_varies_as_long_as_it_fails_so() -> None:
    varying = KnownFailure("violates")
    listings = {CASE: [ListedFailure(varying, Span.of("1"), WRAPS)]}
    old = Ledger("b", OPTIONS, {"wraps": KNOWN}, listings, ("1",))
    then = updated(old, "2", {CASE: [failure(region="1" * 16)], OTHER: [failure()]})
    assert [each.failure for each in then.listings[CASE]] == [varying]
    assert [each.failure for each in then.listings[OTHER]] == [failure()]
    assert str(then.listings[CASE][0].span) == "1 to 2"
    other = updated(old, "1", {CASE: [failure("deviates")]})
    assert [each.failure for each in other.listings[CASE]] == [failure("deviates")]
    assert updated(old, "1", {}).listings == {}


# Files


def listings_by_case(ledger: Ledger) -> dict[str, set[ListedFailure]]:
    return {case: set(listings) for case, listings in ledger.listings.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ledger, "FOLDER", tmp_path)
    return tmp_path


def test_a_written_ledger_is_read_and_written_identically(folder: Path) -> None:
    both = [failure(), failure("deviates", "123e456789012345")]
    found = dict.fromkeys(expand("onnx-cast:*/float16/int8"), both)
    found[BYTE] = [failure(inputs=3)]
    found[OTHER] = [KnownFailure("violates"), failure("deviates", "1" * 16)]
    findings = finding(*found), finding(BYTE, name="a 'b': é — #")
    ledger = update_ledger(None, "b:v", "1.10", OPTIONS, found, findings)
    path = path_of("b:v")
    assert path == folder / "b.v.yaml"
    assert write_ledger(path, ledger) == 2
    text = path.read_bytes()
    reloaded = load_ledger("b:v")
    assert reloaded is not None
    assert listings_by_case(reloaded) == listings_by_case(ledger)
    write_ledger(path, reloaded)
    assert path.read_bytes() == text
    shuffled = replace(ledger, listings=dict(reversed(ledger.listings.items())))
    write_ledger(path, shuffled)
    assert path.read_bytes() == text


@pytest.mark.parametrize("name", ["a/b.py:C", "a.b:C", "../x", "exec:./a b", "", "a:b:c"])
def test_a_backend_without_a_plain_name_has_no_ledger(name: str) -> None:
    assert path_of(name) is None


def test_a_ledger_of_another_backend_is_rejected(folder: Path) -> None:
    listings = {CASE: [ListedFailure(failure(), Span.of("1"), WRAPS)]}
    write_ledger(folder / "one.yaml", Ledger("two", OPTIONS, {"wraps": KNOWN}, listings, ("1",)))
    with pytest.raises(CastigateError, match="the ledger of two, not of one"):
        load_ledger("one")


ZEROS = "0" * 16
VALID = f"""\
backend: b
made-with: ['1.0', '1.1']
tier: quick
seed: 0
max-examples: 1000
findings:
- finding: wraps
  kind: wrong value
  says: wraps
  versions: '1.0'
  cases:
    violates 1 {ZEROS}: {CASE}
- finding: other
  kind: wrong value
  says: other
  versions: '1.0'
  cases:
    violates 1 {ZEROS}:
    - onnx-cast:25/float16/int*
"""
MISTAKES = [
    ("kind: wrong value", "kind: wrong", 8, "must be 'wrong value'"),
    ("violates 1", "violated 1", 12, "should match pattern"),
    ("violates 1", "violates 2", 19, f"{CASE} is listed otherwise by another finding"),
    ("versions: '1.0'", "versions: 2.0 to 1.0", 10, "from the earlier to the later"),
    ("versions: '1.0'", "versions: 1.0", 10, "YAML float"),
    ("versions: '1.0'", "versions: 1.0 to 1.1", 19, f"{CASE} is listed twice for some versions"),
    ("  says: wraps\n", "  say: wraps\n", 9, "unknown key `say`"),
    (ZEROS, "zz", 12, "should match pattern"),
    ("  cases:\n", "  upstream: ftp://x\n  cases:\n", 11, "should match pattern '^https://'"),
    (CASE, "onnx-cast:25/float16/int9", 12, "`onnx-cast:25/float16/int9` is no case"),
    (CASE, "onnx-cast:25/*/nothing:*", 12, "is no case; castigate specs"),
    (CASE, f"onnx-cast:25/{'{a,b}' * 40}", 12, "make more than 65,536 texts; write `*`"),
    ("tier: quick", "tier: slow", 3, "must be 'quick' or 'full'"),
    ("seed: 0\n", "", 1, "`seed` is missing"),
    ("findings:", "entries:", 6, "unknown key `entries`"),
    ("made-with: ['1.0', '1.1']\n", "", 1, "`made-with` is missing"),
    ("versions: '1.0'", "versions: '1.2'", 10, "version 1.2 is not in `made-with`"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES)
def test_a_mistake_is_reported_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(VALID, encoding="utf-8")
    assert {each.findings for each in read_ledger(path).listings[CASE]} == {("other", "wraps")}
    assert old in VALID
    path.write_text(VALID.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DocumentError) as error:
        read_ledger(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert message in str(error.value)


SHIPPED = sorted(Path(ledger_file.__file__).parent.glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_ledger_is_written_identically(path: Path, tmp_path: Path) -> None:
    ledger = read_ledger(path)
    assert path_of(ledger.backend) == path
    write_ledger(tmp_path / path.name, ledger)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
