"""Ledgers: patterns, versions, comparison, updates, and mistakes in files."""

from __future__ import annotations

from pathlib import Path

import pytest

from reports.case_patterns import MAX_CASES, compress, expand, ids_of, matches
from reports.ledger import ledger_file
from reports.ledger.breaches import Breach
from reports.ledger.ledger_file import load_ledger, path_of, read_ledger
from reports.ledger.listing import InputOptions, Ledger, Listing, compare_with_listings
from reports.ledger.update import update_ledger, write_ledger
from reports.ledger.version_spans import Span, version_order
from specs.errors import CastigateError, DocumentError

CASE = "onnx-cast:25/float16/int8"
OTHER = "onnx-cast:25/float16/int16"
BYTE = "onnx-cast:25/float8e5m2/bool"
OPTIONS = InputOptions()


def breach(rule: str = "a", region: str = "0" * 16, inputs: int = 1) -> Breach:
    return Breach("violates", rule, inputs, region, "0x1 gives 0x2, not 0x3")


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
    expansions = [expand(pattern) for pattern in found]
    assert {case for expansion in expansions for case in expansion} == cases
    assert all(len(expansion) <= MAX_CASES for expansion in expansions)
    assert compress(sorted(cases, reverse=True)) == found
    if len(cases) <= MAX_CASES:
        assert len(found) <= len(patterns)


def test_a_pattern_that_would_cover_other_cases_is_not_used() -> None:
    *all_but_one, _ = expand("onnx-cast:25/float16/float8e5m2/saturate:*")
    assert compress(all_but_one) == all_but_one


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
    assert str(Span.of("1.9").extended_to("1.8+cpu")) == "1.8 to 1.9"


@pytest.mark.parametrize("text", ["1.9 to 1.8", " to 1", "1 to "])
def test_a_text_that_is_not_a_span_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="version"):
        Span.of(text)


# Comparison


def test_a_case_is_known_only_if_every_rule_and_region_is_listed() -> None:
    listed = [Listing(breach("a"), Span.of("1")), Listing(breach("b"), Span.of("1"))]
    same = [breach("a"), breach("b")]
    assert compare_with_listings(listed, same, "violates").status == "known"  # type: ignore[union-attr]
    for found in ([breach("a")], [*same, breach("c")], [breach("a"), breach("b", "1" * 16)]):
        assert compare_with_listings(listed, found, "violates").status == "changed"  # type: ignore[union-attr]
    assert compare_with_listings([], [], "conforms") is None


# Updates


def spans(ledger: Ledger) -> list[tuple[str, str]]:
    return [(str(each.span), each.breach.region[0]) for each in ledger.listings.get(CASE, ())]


def test_an_update_extends_spans_and_keeps_listings_for_other_versions() -> None:
    first = update_ledger(None, "b", "1.0+cpu", OPTIONS, {CASE: [breach()], OTHER: [breach()]})
    then = update_ledger(first, "b", "1.2", OPTIONS, {CASE: [breach()]})
    assert spans(then) == [("1.0 to 1.2", "0")]
    assert [str(each.span) for each in then.listings[OTHER]] == ["1.0"]
    fixed = update_ledger(then, "b", "1.2", OPTIONS, {})
    assert spans(fixed) == []


def test_an_update_never_lists_a_case_twice_for_a_version() -> None:
    first = update_ledger(None, "b", "1.0", OPTIONS, {CASE: [breach(region="a" * 16)]})
    then = update_ledger(first, "b", "2.0", OPTIONS, {CASE: [breach(region="b" * 16)]})
    assert spans(then) == [("1.0", "a"), ("2.0", "b")]
    third = update_ledger(then, "b", "3.0", OPTIONS, {CASE: [breach(region="a" * 16)]})
    assert spans(third) == [("1.0", "a"), ("2.0", "b"), ("3.0", "a")]
    back = update_ledger(third, "b", "2.0", OPTIONS, {CASE: [breach(region="a" * 16)]})
    assert spans(back) == [("3.0", "a"), ("1.0 to 2.0", "a")]


def test_an_update_keeps_behaviors_and_links() -> None:
    link = "https://example.org/1"
    old = Ledger("b", OPTIONS, {CASE: [Listing(breach(), Span.of("1"), "wraps", link)]})
    then = update_ledger(old, "b", "1", OPTIONS, {CASE: [breach()], OTHER: [breach()]})
    for case in (CASE, OTHER):
        [listing] = then.listings[case]
        assert (listing.behavior, listing.upstream) == ("wraps", link)
    moved = update_ledger(old, "b", "1", OPTIONS, {CASE: [breach(region="1" * 16)]})
    [listing] = moved.listings[CASE]
    assert (listing.behavior, listing.upstream) == (None, link)


# Files


def listings_by_case(ledger: Ledger) -> dict[str, set[Listing]]:
    return {case: set(listings) for case, listings in ledger.listings.items()}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(ledger_file, "FOLDER", tmp_path)
    return tmp_path


def test_a_written_ledger_is_read_and_written_identically(folder: Path) -> None:
    breach_with_odd_example = Breach("error", "", 0, "123e456789012345", 'it\'s: "odd" \x07 — #')
    found = {
        case: [breach("a b"), breach_with_odd_example]
        for case in expand("onnx-cast:*/float16/int8")
    }
    found[BYTE] = [breach("a b", inputs=3)]
    ledger = update_ledger(None, "b:v", "1.10", OPTIONS, found)
    path = path_of("b:v")
    assert path == folder / "b.v.yaml"
    assert write_ledger(path, ledger) == 3
    text = path.read_bytes()
    reloaded = load_ledger("b:v")
    assert reloaded is not None
    assert listings_by_case(reloaded) == listings_by_case(ledger)
    write_ledger(path, reloaded)
    assert path.read_bytes() == text
    shuffled = Ledger("b:v", OPTIONS, dict(reversed(ledger.listings.items())))
    write_ledger(path, shuffled)
    assert path.read_bytes() == text


@pytest.mark.parametrize("name", ["a/b.py:C", "a.b:C", "../x", "exec:./a b", "", "a:b:c"])
def test_a_backend_without_a_plain_name_has_no_ledger(name: str) -> None:
    assert path_of(name) is None


def test_a_ledger_of_another_backend_is_rejected(folder: Path) -> None:
    write_ledger(
        folder / "one.yaml", Ledger("two", OPTIONS, {CASE: [Listing(breach(), Span.of("1"))]})
    )
    with pytest.raises(CastigateError, match="the ledger of two, not of one"):
        load_ledger("one")


VALID = f"""\
backend: b
tier: quick
seed: 0
max-examples: 1000
entries:
- verdict: violates
  rule: a
  versions: '1.0'
  inputs: 1
  region: '{"0" * 16}'
  example: 0x1 gives 0x2
  cases:
  - {CASE}
- verdict: violates
  rule: a
  versions: 1.1 to 1.3
  region: '{"0" * 16}'
  example: 0x1 gives 0x2
  cases:
  - onnx-cast:25/float16/*
"""
TOO_WIDE = next(
    f"onnx-cast:{version}/*/{target}"
    for version in ("*", "25")
    for target in ("float32", "int8")
    if len(expand(f"onnx-cast:{version}/*/{target}")) > MAX_CASES
)
MISTAKES = [
    ("verdict: violates", "verdict: wrong", 6, "Input should be 'violates'"),
    ("  rule: a\n", "", 6, "violates names no `rule`"),
    ("verdict: violates", "verdict: crashed", 6, "crashed has no `rule`; leave it out"),
    ("versions: '1.0'", "versions: 2.0 to 1.0", 8, "from the earlier to the later"),
    ("versions: '1.0'", "versions: 1.0", 8, "YAML float"),
    ("versions: '1.0'", "versions: '1.2'", 14, f"{CASE} is listed already for 1.2"),
    ("inputs: 1", "inputs: -1", 9, "greater than or equal to 0"),
    ("inputs: 1", "input: 1", 9, "unknown key `input`"),
    (f"region: '{'0' * 16}'", "region: 'zz'", 10, "should match pattern"),
    ("  cases:\n", "  upstream: ftp://x\n  cases:\n", 12, "should match pattern '^https://'"),
    (f"- {CASE}", "- onnx-cast:25/float16/int9", 13, "`onnx-cast:25/float16/int9` is no case"),
    (f"- {CASE}", "- onnx-cast:25/*/nothing:*", 13, "is no case; castigate specs"),
    (f"- {CASE}", f"- {TOO_WIDE}", 13, f"cases, more than {MAX_CASES}; write fewer `*`"),
    ("tier: quick", "tier: slow", 2, "Input should be 'quick' or 'full'"),
    ("seed: 0\n", "", 1, "`seed` is missing"),
]


@pytest.mark.parametrize(("old", "new", "line", "message"), MISTAKES)
def test_a_mistake_is_reported_with_its_line(
    tmp_path: Path, old: str, new: str, line: int, message: str
) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(VALID, encoding="utf-8")
    read_ledger(path)
    assert old in VALID
    path.write_text(VALID.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DocumentError) as error:
        read_ledger(path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert message in str(error.value)


def test_a_pattern_may_stand_for_forty_cases_and_not_for_one_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "b.yaml"
    path.write_text(VALID.replace(f"- {CASE}", "- onnx-cast:1/*/wide"), encoding="utf-8")
    for count in (MAX_CASES, MAX_CASES + 1):
        names = [f"onnx-cast:1/source{number}/wide" for number in range(count)]
        known = {**ids_of("onnx-cast"), **dict.fromkeys(names)}
        monkeypatch.setattr("reports.case_patterns.ids_of", lambda _, known=known: known)
        if count == MAX_CASES:
            assert len(read_ledger(path)[1][0]) == MAX_CASES
        else:
            with pytest.raises(DocumentError, match="stands for 41 cases, more than 40"):
                read_ledger(path)


SHIPPED = sorted(Path(ledger_file.__file__).parent.glob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_a_shipped_ledger_is_written_identically(path: Path, tmp_path: Path) -> None:
    file, _ = read_ledger(path)
    ledger = load_ledger(file.backend)
    assert ledger is not None
    assert path_of(file.backend) == path
    write_ledger(tmp_path / path.name, ledger)
    assert (tmp_path / path.name).read_bytes() == path.read_bytes()
