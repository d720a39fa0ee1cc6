"""Write changes in the same words for a terminal, Markdown, and the annotations of a CI job."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from reports.changes.change import KIND_WORDS, BackendChanges, Change
from reports.findings.finding_text import counted
from reports.outputs.annotations import annotation
from reports.outputs.totals import COLUMNS, wrapped
from specs.plain_text import escape_markdown

ROWS = 29
"""The most lines of a screen, without the command's own last line."""
LEAST_ROWS = 6
"""The least lines of each backend, however many there are."""
HAVE_ONE_SIDE = ("unsupported", "supported")
"""The kinds of changes in which one side has no answers."""
MOST_PATTERNS = 8
"""The most patterns of cases that Markdown lists for a change."""


def heading(changes: BackendChanges) -> str:
    """Return a line with the backend, what it is compared with, and how many cases changed how."""
    news = [f"{count:,} {KIND_WORDS[kind]}" for kind, count in changes.counts.items()]
    same = f"{counted(changes.same, 'case')} as before"
    if not changes.has_cases:
        same = f"no case in common, {counted(changes.same, 'check')} of dtype pairs as before"
    parts = [*news, same] if news or not changes.has_cases else ["nothing changed", same]
    return f"{changes.backend} {changes.now}, {changes.since}: {', '.join(parts)}"


def sentence(change: Change) -> str:
    """Return the kind of a change and its sentence."""
    return f"{KIND_WORDS[change.kind]}: {change.says}"


def details(change: Change) -> str:
    """Return the example of a change, and how far it reaches."""
    example = f"{change.example}, in {change.example.case}" if change.example else ""
    parts = [example, change.reach]
    # What is not supported has no answers to show.
    return "; ".join(filter(None, reversed(parts) if change.kind in HAVE_ONE_SIDE else parts))


def screen(every: Sequence[BackendChanges], rows: int | None = ROWS) -> list[str]:
    """Return the lines of a screen about several backends; with ``rows`` they share that many.

    Every change has at least its sentence there. If not even these fit, the others are counted.
    """
    own = None if rows is None else max(LEAST_ROWS, rows // max(1, len(every)))
    return [line for each in every for line in _lines(each, own)]


def _lines(changes: BackendChanges, rows: int | None) -> list[str]:
    head = wrapped(heading(changes))
    notes = changes.notes  # Not broken into lines: a command is there to be copied.
    forms = [[*_forms(each)] for each in changes.changes]
    if rows is None:
        return [*head, *(line for each in forms for line in each[-1]), *notes]
    places = _first_served(changes.changes)
    # A line is left for the changes that are only counted.
    shown: dict[int, list[str]] = {}
    left = rows - len(head) - len(notes)
    left -= len(places) > left
    for level in range(len(forms[0]) if forms else 0):
        for place in places:
            added = len(forms[place][level]) - len(shown.get(place, ()))
            if added <= left:
                shown[place], left = forms[place][level], left - added
    others = [each for place, each in enumerate(changes.changes) if place not in shown]
    counts = Counter(KIND_WORDS[each.kind] for each in others)
    more = ", ".join(f"{count:,} more {kind}" for kind, count in counts.items())
    last = [f"  and {more}"] if others else []
    return [*head, *(line for place in sorted(shown) for line in shown[place]), *last, *notes]


def _forms(change: Change) -> Iterator[list[str]]:
    """Yield the lines of a change in ever more words; the last form leaves nothing out."""
    first, second = f"  {sentence(change)}", f"    {details(change)}"
    yield [_cut(first)]
    yield [_cut(first), _cut(second)]
    yield [_cut(first), *wrapped(second)]
    yield [*wrapped(first), *wrapped(second)]


def _first_served(changes: Sequence[Change]) -> list[int]:
    """Return the places of changes: the first of each kind, what is worse, and then the others."""
    firsts = {each.kind: place for place, each in reversed([*enumerate(changes)])}
    return sorted(
        range(len(changes)),
        key=lambda at: (
            at not in firsts.values(),
            changes[at].kind != "worse",
            -len(changes[at].cases),
            at,
        ),
    )


def _cut(line: str) -> str:
    return line if len(line) <= COLUMNS else f"{line[: COLUMNS - 1].rstrip()}…"


def markdown(every: Sequence[BackendChanges]) -> Iterator[str]:
    """Yield the lines of a section about each backend, with all changes and their cases."""
    for changes in every:
        yield f"## {escape_markdown(heading(changes))}"
        yield ""
        for each in changes.changes:
            yield f"- **{KIND_WORDS[each.kind]}**: {escape_markdown(each.says)}  "
            yield f"  {escape_markdown(details(each))}  "
            patterns = [*map(escape_markdown, each.patterns[:MOST_PATTERNS])]
            if (more := len(each.patterns) - MOST_PATTERNS) > 0:
                patterns.append(f"and {counted(more, 'more pattern')}")
            yield f"  {', '.join(patterns)}"
        if changes.changes:
            yield ""


def workflow_commands(every: Sequence[BackendChanges]) -> Iterator[str]:
    """Yield a command of GitHub Actions per change: an error if it is worse, else a notice."""
    for changes in every:
        title = f"{changes.backend} {changes.now}, {changes.since}"
        for each in changes.changes:
            level: Literal["error", "notice"] = "error" if each.kind == "worse" else "notice"
            yield annotation(level, title, f"{sentence(each)}. {details(each)}")
