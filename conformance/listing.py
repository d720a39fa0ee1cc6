"""Documents, versions, cases and rules as lines of text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from specs.calls import FORM
from specs.document import FormEntry, PromiseEntry, RuleEntry
from specs.editions import Edition, edition, editions
from specs.errors import CastigateError
from specs.lint import Proof
from specs.load import Document, documents
from specs.operations import take
from specs.pages import cited


def all_documents() -> Iterator[str]:
    """One line per document."""
    for made in documents().values():
        versions = ", ".join(made.entry.versions)
        cases = sum(1 for one in editions(made) for _ in one.cases())
        yield f"{made.name:<20} {cases:>6} cases  versions {versions}  ({made.entry.title})"


def document(made: Document) -> Iterator[str]:
    """A document's versions, then its rules and promises with level and clause, and conflicts."""
    yield f"{made.entry.title} ({made.name}), sha256 {made.digest}"
    yield ""
    for one in editions(made):
        yield f"  {made.name}:{one.version:<6} {_counts(one)}"
    yield ""
    named: dict[str, RuleEntry | PromiseEntry | FormEntry] = {
        **made.entry.rules,
        **made.entry.promises(),
        **{f"{FORM}:{name}": form for name, form in made.entry.forms.items() if form.conflict},
    }
    width = max(map(len, named))
    for name, entry in named.items():
        lines = f" ({cited(entry.lines)})" if entry.lines else ""
        yield f"  {name:<{width}}  {entry.level:<12} {entry.clause}{lines}"
        for conflict in entry.conflict:
            yield f"  {'':<{width}}  conflict with {conflict.with_}: {conflict.about}"
            yield f"  {'':<{width}}  taken: {conflict.taken}"


def version(made: Document, name: str) -> Iterator[str]:
    """A version's types, parameters, counts and cases."""
    one = edition_named(made, name)
    yield f"{made.name}:{name}: {_counts(one)}"
    yield f"  from {' '.join(one.sources)}"
    yield f"  to   {' '.join(one.targets)}"
    for key, parameter in one.parameters():
        yield f"  {key}: {' '.join(parameter.values)} (default {parameter.default})"
    yield from (f"  attribute {key}: {kind}" for key, kind in one.attributes)
    yield ""
    for case in one.cases():
        yield f"  {case.id}  {', '.join(take(made, case).rules)}"


def edition_named(made: Document, name: str) -> Edition:
    """A version of a document, or an error that lists those there are."""
    if name not in made.entry.versions:
        known = ", ".join(made.entry.versions)
        raise CastigateError(f"{made.name} has no version `{name}`; it has {known}")
    return edition(made, name)


def _counts(one: Edition) -> str:
    kinds: Counter[str] = Counter()
    for case in one.cases():
        if case.example is not None:
            kinds["examples"] += 1
        elif (case.source, case.target) in one.listed:
            kinds["of listed pairs"] += 1
        else:
            rejected = take(one.document, case).is_rejection
            kinds["rejections" if rejected else "of pairs not listed"] += 1
    parts = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
    return f"{len(one.listed)} listed pairs, {kinds.total()} cases ({parts})"


def proofs(made: Iterable[Proof]) -> Iterator[str]:
    """What a lint run proved."""
    for proof in made:
        covered = (
            "" if proof.lines is None else f"; all {proof.lines} lines of the page are covered"
        )
        yield (
            f"{proof.document}: {proof.cases} cases of {proof.versions} versions are total and"
            f" unambiguous under {proof.rules} rules{covered}"
        )
