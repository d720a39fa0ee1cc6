"""The navigation of a report: a few sections, so that its line is short, with their pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class PageLink(NamedTuple):
    """A page's file and its title."""

    file: str
    title: str


class NavigationSection(NamedTuple):
    """A group of pages; ``title`` names several pages, while a single one has its own title."""

    title: str
    links: Sequence[PageLink]

    @property
    def link(self) -> PageLink:
        """The section's entry, which leads to its first page."""
        [first, *more] = self.links
        return PageLink(first.file, self.title) if more else first

    def holds(self, file: str) -> bool:
        """Return whether the page in a file belongs to the section."""
        return any(each.file == file for each in self.links)


def navigation(
    conversions: Sequence[PageLink], added: Sequence[PageLink]
) -> list[NavigationSection]:
    """Return the sections of a report with these pages of conversions and of extras.

    There are at most six, besides the link to the front page. Sections without pages are left out.
    """
    sections = [
        NavigationSection("Conversions", conversions),
        NavigationSection("Cases", [PageLink("cases.html", "Cases")]),
        NavigationSection(
            "Open points",
            [PageLink("open.html", "Open points"), PageLink("behaviors.html", "Behaviors")],
        ),
        NavigationSection("Layouts", [PageLink("layouts.html", "Layouts")]),
        NavigationSection("Trend", [PageLink("trend.html", "Trend")]),
        NavigationSection("More", added),
    ]
    return [each for each in sections if each.links]
