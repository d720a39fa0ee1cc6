"""The results as a table, on the terminal and in ``docs/atlas/mutation.md``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from lab.code_mutation.results import Results, Tried
from lab.code_mutation.selection import PACKAGES, package_of
from lab.code_mutation.trial import LIMIT
from lab.code_mutation.verdicts import EQUIVALENT, NOT_READ, TESTED, UNTESTED, Verdicts, verdict_of
from reports.outputs.table import markdown_table

INTRODUCTION = """\
# Mutants of the code

Written by `tox -e mutation` (`python -m lab.code_mutation`), not by hand. A **code mutant**, here
mutant for short, is a copy of the code with one small change, such as `<` in place of `<=`. The
tests that belong to the changed module (`lab/code_mutation/related_tests.py`) have to fail: then
the mutant is **killed**. One that survives shows what no test looks at, or that the change changes
nothing.

- cosmic-ray makes the changes: other operators and numbers, negated conditions, `and` for `or`,
  loops that end at once, exceptions that are not caught, decorators removed.
- A seed draws the mutants: of each package as many as it has lines for, at each place at most one.
- Not changed are annotations, texts, decorators that only make faster, arguments of decorators,
  and `strict=` of `zip` (`lab/code_mutation/silent_places.py`).
- Only the tests of the module run, and none that is `nightly`. The whole suite may kill more.
- A mutant whose tests take more than {limit:.0f} minutes is **timed out**, and counts as killed.

The first table shows how the mutants fared when they were first tried, so before tests were
written because of them. "Now" is after that: `lab/code_mutation/verdicts.yaml` says what somebody
who read each survivor found. Its last column leaves out mutants that are equivalent. Only the first
table estimates the share of all mutants, as the new tests were written for those of the sample.
"""
HEAD = ("package", "mutants", "killed", "timed out", "survived", "share killed")
NOW_HEAD = ("now", "killed or timed out", "equivalent", "not tested", "not read", "share killed")

Groups = Sequence[tuple[str, Sequence[Tried]]]


def groups(results: Results) -> Groups:
    """The mutants by package, and all of them."""
    by_package: dict[str, list[Tried]] = {package: [] for package in PACKAGES}
    for each in results.tried:
        by_package[package_of(each.mutant.file)].append(each)
    return [*by_package.items(), ("all", results.tried)]


def first_rows(results: Results) -> Iterator[list[str]]:
    """One row for each package: how its mutants fared at first."""
    for name, tried in groups(results):
        counts = Counter(each.first for each in tried)
        killed = counts["killed"] + counts["timed out"]
        figures = (len(tried), counts["killed"], counts["timed out"], counts["survived"])
        yield [name, *(f"{figure:,}" for figure in figures), share(killed, len(tried))]


def rows_now(results: Results, verdicts: Verdicts) -> Iterator[list[str]]:
    """One row for each package: how its mutants fare now, and the verdicts on survivors."""
    for name, tried in groups(results):
        survivors = [each for each in tried if each.now == "survived"]
        said = Counter(kind_of(each, verdicts) for each in survivors)
        killed = len(tried) - len(survivors)
        figures = (killed, said[EQUIVALENT], said[UNTESTED], said[NOT_READ])
        rest = len(tried) - said[EQUIVALENT]
        yield [name, *(f"{figure:,}" for figure in figures), share(killed, rest)]


def kind_of(tried: Tried, verdicts: Verdicts) -> str:
    """The first words of the verdict on a survivor, or ``not read``.

    A survivor whose verdict says that it is tested counts as not read.
    """
    said = verdict_of(tried.mutant, verdicts)
    return next((kind for kind in (EQUIVALENT, UNTESTED) if said.startswith(kind)), NOT_READ)


def share(part: int, whole: int) -> str:
    """A share in percent, rounded down so that 100 means all; empty if there is nothing."""
    return f"{1000 * part // whole / 10} %" if whole else ""


def page(results: Results, verdicts: Verdicts) -> str:
    """Return the whole page in Markdown."""
    return "\n".join(_lines(results, verdicts)) + "\n"


def _lines(results: Results, verdicts: Verdicts) -> Iterator[str]:
    yield INTRODUCTION.format(limit=LIMIT / 60)
    yield from markdown_table(HEAD, first_rows(results))
    yield ""
    yield from markdown_table(NOW_HEAD, rows_now(results, verdicts))
    yield f"\n{results.date}, seed {results.seed}, {results.versions}.\n"
    yield "## Survivors\n"
    yield "Each survived when it was first tried.\n"
    for each in sorted(
        (each for each in results.tried if each.first == "survived"),
        key=lambda each: (PACKAGES.index(package_of(each.mutant.file)), each.mutant.file),
    ):
        yield from _survivor(each, verdicts)


def _survivor(tried: Tried, verdicts: Verdicts) -> Iterator[str]:
    mutant = tried.mutant
    said = verdict_of(mutant, verdicts)
    if said.startswith(TESTED) and tried.now == "survived":
        said = f"{NOT_READ}: said to be {said}, but survives"
    inside = f" (`{mutant.inside}`)" if mutant.inside else ""
    yield f"`{mutant.file}`, line {mutant.line}{inside}: {said}\n"
    yield from ("```diff", f"- {mutant.before}", f"+ {mutant.after}".rstrip(), "```", "")
