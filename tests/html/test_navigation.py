"""The sections of a report's navigation, and the order of dtypes."""

from __future__ import annotations

from reports.dtype_order import USUAL, usual_first
from reports.html.site import PageLink, navigation
from specs.formats import formats

CASTS, CALLS = PageLink("casts.html", "Casts"), PageLink("calls.html", "Calls")
ADDED = [PageLink(f"{number}.html", f"Page {number}") for number in range(9)]


def test_many_pages_make_few_sections() -> None:
    found = navigation([CASTS, CALLS], ADDED)
    assert [each.link.title for each in found] == [
        *("Conversions", "Cases", "Open points", "Layouts", "Trend", "More")
    ]
    assert [each.link.file for each in found] == [
        *("casts.html", "cases.html", "open.html", "layouts.html", "trend.html", "0.html")
    ]
    assert found[0].holds("calls.html")
    assert not found[0].holds("open.html")


def test_a_section_of_one_page_has_its_title_and_one_of_none_is_left_out() -> None:
    assert [each.link for each in navigation([CASTS], [])][:2] == [
        CASTS,
        PageLink("cases.html", "Cases"),
    ]
    assert navigation([], ADDED[:1])[0].link.title == "Cases"
    assert navigation([], ADDED[:1])[-1].link == ADDED[0]


def test_every_dtype_has_one_place_and_usual_ones_the_first() -> None:
    assert {*usual_first()} == {*formats()}
    assert [*usual_first().values()] == [*range(len(formats()))]
    assert [*usual_first()][: len(USUAL)] == [
        *("float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool")
    ]
