"""Writes the page of what optimizers make of chains, by their rules and by their models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from conformance.extras.removable_casts.judged_rewrites import Rewritten, RewrittenChains
from conformance.extras.removable_casts.removable_page import WORDS, counterexample_words
from conformance.extras.removable_casts.rewrites import rewrites
from reports.outputs.table import markdown_table
from specs import VERSION

COLUMNS = {
    "always": "always",
    "defined": "where defined",
    "never recommended": "not recommended",
    "never required": "wrong",
    "unlisted": "not listed",
}
"""The columns of a table, by the answers that they count."""


def page(found: RewrittenChains) -> str:
    """Return the page about judged rewrites as Markdown."""
    return "\n".join([*_head(found.date), *_rules(found.rules), *_installed(found.installed), ""])


def summary_lines(found: Iterable[Rewritten]) -> Iterator[str]:
    """Yield a line for each rule or optimizer: how many chains it rewrites, how many wrongly."""
    for each in found:
        wrong = sum(each.answers.get(answer, 0) for answer in ("never required", "unlisted"))
        weak = each.answers.get("never recommended", 0)
        yield (
            f"{sum(each.answers.values()):>7,} of {each.asked:,} chains, {wrong:,} wrong, {weak:,}"
            f" not as recommended  {each.name}"
        )


def _head(date: str) -> Iterator[str]:
    yield "# What the rewrites of the field do to casts"
    yield ""
    yield (
        f"Made by `castigate chains rewrites --page FILE` (castigate {VERSION}, {date})."
        " Optimizers leave casts out of chains A→B→C by rules of their own. `specs/rewrites.yaml`"
        " has their conditions as data. Each chain that a rule rewrites, with at most one cast in a"
        " mode that is not the default, is compared with what is left of it, for every input of A,"
        " as [chains.md](../chains.md) says."
    )
    yield ""
    rows = [
        ["always", "gives what the chain may give"],
        ["where defined", "does so where the chain is defined; elsewhere it answers otherwise"],
        ["not recommended", f"may not stand there: {_after('never recommended')}"],
        ["wrong", f"may not stand there: {_after('never required')}"],
        ["not listed", "is no cast that the document lists"],
    ]
    yield from markdown_table(("column", "what is left"), rows)


def _after(answer: str) -> str:
    return WORDS[answer].partition(": ")[2]


def _rules(found: Iterable[Rewritten]) -> Iterator[str]:
    yield ""
    yield "## By the text of each rule"
    yield ""
    yield (
        "The rules are judged by ONNX's Cast where they rewrite ONNX models, and by plain casts"
        " (`specs/yardsticks/plain_cast.yaml`) elsewhere: nearest even, low bits of integers, and"
        " anything where a float does not fit an integer."
    )
    yield ""
    by_name = {each.name: each for each in found}
    rows = [
        _row(by_name[name], f"`{name}`")
        if name in by_name
        else [f"`{name}`", "–", rule.why, *([""] * len(COLUMNS))]
        for name, rule in rewrites().rewrites.items()
    ]
    yield from markdown_table(("rule", "judged by", "rewrites", *COLUMNS.values()), rows)
    yield ""
    for name, rule in rewrites().rewrites.items():
        yield f"- `{name}`: {rule.system}, {rule.place}. Default: {rule.default}."
        if name in by_name:
            yield from _example(by_name[name])


def _installed(found: Iterable[Rewritten]) -> Iterator[str]:
    yield ""
    yield "## By what is installed"
    yield ""
    yield (
        "Read from the models that optimizers write, with the middle of each chain hidden and its"
        " input given at run time. No kernel takes part."
    )
    yield ""
    every = list(found)
    titles = ("optimizer", "judged by", "rewrites", *COLUMNS.values())
    yield from markdown_table(titles, [_row(each, each.name) for each in every])
    yield ""
    for each in every:
        refused = f" For {each.refused:,} chains it makes no model." if each.refused else ""
        example = [*_example(each)]
        if example or refused:
            yield f"- {each.name}:{refused}"
            yield from example


def _row(found: Rewritten, name: str) -> list[str]:
    counts = (f"{found.answers.get(answer, 0):,}" for answer in COLUMNS)
    rewritten = f"{sum(found.answers.values()):,} of {found.asked:,}"
    return [name, found.edition, rewritten, *counts]


def _example(found: Rewritten) -> Iterator[str]:
    if found.worst is None:
        return
    given, kept, other = counterexample_words(found.worst)
    instead = f"`{found.worst.instead}`" if found.worst.instead else "nothing"
    yield (
        f"  In `{found.worst.chain}` {given} gives {kept}; left is {instead}, which gives {other}."
    )
