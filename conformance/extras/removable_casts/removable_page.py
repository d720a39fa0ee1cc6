"""Writes which casts may be left out as a page: counts first, then a matrix per middle dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from textwrap import wrap

from conformance.extras.removable_casts.removable_casts import RemovableCast, RemovableCasts
from conformance.extras.removable_casts.rewrites import rewrites
from reports.findings.finding_text import datum_words
from reports.outputs.table import markdown_table
from specs.chains import chain_named

WIDTH = 100
WORDS: Mapping[str, str] = {
    "always": "may always be left out",
    "always weaker": "may always be left out, and less is then required of some inputs",
    "always unknown": "may always be left out; whether less is then required is not decided",
    "defined": "may be left out where the chain is defined",
    "defined weaker": "may be left out where the chain is defined, and less is then required",
    "defined unknown": "may be left out where the chain is defined; what is required, not decided",
    "never required": "may not be left out: the document requires another result",
    "never recommended": "may not be left out: the document recommends another result",
    "unlisted": "may not be left out: the document lists no cast from end to end",
    "unknown": "not decided in time",
}
"""Descriptions of the cast in the middle of a chain, by what ``standing_of`` returns."""
SIGNS: Mapping[str, str] = {
    "always": "=",
    "always weaker": "~",
    "always unknown": "?",
    "defined": "o",
    "defined weaker": "c",
    "defined unknown": "?",
    "never required": "!",
    "never recommended": "·",
    "unlisted": "-",
    "unknown": "?",
}
UNEQUAL = ("weaker", "unknown")
"""The values of ``strictness`` that a page and a summary name."""


def answer_of(found: RemovableCast) -> str:
    """Return whether a cast is removable, and the level if there is one, as ``never required``."""
    return f"{found.removable} {found.level}".rstrip()


def standing_of(found: RemovableCast) -> str:
    """Return ``answer_of``, followed by the chain's strictness if this is in ``UNEQUAL``."""
    return answer_of(found) + (f" {found.strictness}" if found.strictness in UNEQUAL else "")


def summary_lines(found: Iterable[RemovableCast]) -> Iterator[str]:
    """Yield a line for each result of ``standing_of`` that some chains have, with their number."""
    counts = Counter(map(standing_of, found))
    for answer, words in WORDS.items():
        if counts[answer]:
            yield f"{counts[answer]:>7,}  {words}"


def found_lines(found: RemovableCast) -> Iterator[str]:
    """Yield lines with what is known of one chain, and the rules that rewrite it.

    Rules that are judged by another document than the chain's are left out.
    """
    chain = chain_named(found.chain)
    yield found.chain
    yield f"  the cast to {chain.dtypes[1]} {WORDS[standing_of(found)]}"
    if found.counterexample is not None:
        given, kept, other = counterexample_words(found)
        yield f"  {given} gives {kept}"
        yield f"  {found.instead} gives {other}"
    else:
        yield f"  known by: {found.known_by}"
    if found.weakening is not None:
        given = datum_words(chain.source, found.weakening.input)
        yield f"  the chain requires its answer to {given}"
        yield f"  {found.instead} only recommends it"
    document = f"{chain.steps[0].document}:"
    named = [
        name
        for name, rule in rewrites().rewrites.items()
        if rule.edition.startswith(document) and rewrites().applies(rule, chain)
    ]
    if named:
        words = f"rules that rewrite it: {', '.join(named)}"
        yield from wrap(
            words, WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
        )


def counterexample_words(found: RemovableCast) -> tuple[str, str, str]:
    """Return in words a counterexample's input, the chain's results, and those of other casts.

    These are the casts that stand in the chain's place. ``found`` must have a counterexample.
    """
    assert found.counterexample is not None
    given, chain = found.counterexample, chain_named(found.chain)
    kept, other = (
        " or ".join(datum_words(chain.target, each) for each in words)
        for words in (given.chain, given.instead)
    )
    return datum_words(chain.source, given.input), kept, other


def page(every: RemovableCasts) -> str:
    """Return the page about which casts of an edition may be left out, as Markdown."""
    return "\n".join([*_head(every), *_matrices(every.chains), ""])


def _head(every: RemovableCasts) -> Iterator[str]:
    found, edition = every.chains, every.edition
    yield f"# Which casts may be left out: {edition}"
    yield ""
    yield (
        f"Made by `castigate chains {edition} --page FILE` (castigate {every.suite}, {every.date}),"
        " from the document's rules alone. In a chain A→B→C the cast to B may be left out where all"
        " that the cast A→C may give is what the chain may give."
    )
    yield ""
    counts = Counter(map(standing_of, found))
    rows = [
        [f"`{SIGNS[answer]}`", f"{counts[answer]:,}", words]
        for answer, words in WORDS.items()
        if counts[answer] or answer == "unknown" or SIGNS[answer] != SIGNS["unknown"]
    ]
    yield from markdown_table(("sign", "chains", "the cast in the middle"), rows)
    yield ""
    weaker = [each for each in found if each.weakening is not None]
    if weaker:
        yield (
            "Less is then required where for some input the document requires each cast of the"
            " chain, and only recommends the cast A→C, which gives the same. Another answer of a"
            f" backend violates the chain there, and only deviates from A→C. {_example(weaker)}"
            " `--json FILE` has such an input of each chain."
        )
        yield ""
    methods = Counter(each.known_by for each in found)
    ways = ", ".join(f"{methods[each]:,} by {each}" for each in sorted(methods))
    yield f"All {len(found):,} chains of two casts, in all modes: {ways}."
    yield ""
    yield "The matrices show the default modes. Rows are A, columns C."


def _example(weaker: Sequence[RemovableCast]) -> str:
    first = weaker[0]
    assert first.weakening is not None
    given = datum_words(chain_named(first.chain).source, first.weakening.input)
    return f"The first is `{first.chain}` of {given}."


def _matrices(found: Sequence[RemovableCast]) -> Iterator[str]:
    signs: dict[tuple[str, ...], str] = {}
    for each in found:
        chain = chain_named(each.chain)
        # The first chain of a path has the default modes.
        signs.setdefault(chain.dtypes, SIGNS[standing_of(each)])
    dtypes = list(dict.fromkeys(path[0] for path in signs))
    for middle in dict.fromkeys(path[1] for path in signs):
        targets = [each for each in dtypes if any(p[1:] == (middle, each) for p in signs)]
        yield ""
        yield f"## Through {middle}"
        yield ""
        yield "```text"
        width = max(map(len, dtypes))
        for line in _column_names(targets):
            yield f"{'':{width}} {line}".rstrip()
        for source in dtypes:
            row = [signs.get((source, middle, target), " ") for target in targets]
            if set(row) != {" "}:
                yield f"{source:{width}} {' '.join(row)}".rstrip()
        yield "```"


def _column_names(names: Sequence[str]) -> Iterator[str]:
    """Yield lines with the names from top to bottom, one letter each, ending at the same line."""
    height = max(map(len, names))
    for line in zip(*(name.rjust(height) for name in names), strict=True):
        yield " ".join(line)
