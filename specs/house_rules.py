"""House rules, read from YAML: the answers a user requires where a document leaves them open.

"The document leaves it open" is the true answer to most disputes, but does not help a user who has
to ship a model. House rules choose one of the answers that a document allows. They are not the
page's: a document with them is a document of its own, named ``DOCUMENT+RULES``, whose other rules
are those of the page: the choices decide only its open branches. Backends are asked the document's
own cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from specs.behaviors import behaviors
from specs.branches import Branch, Ruling
from specs.cases import JOINT, Case
from specs.errors import CastigateError, DocumentError, did_you_mean
from specs.formats import Format, format_named, formats
from specs.model.document import (
    HEX,
    KIND_WORDS,
    OUTCOME_WORDS,
    Identifier,
    InputClass,
    RuleEntry,
    Text,
    WordList,
)
from specs.model.strict_model import StrictModel, validated
from specs.model.vocabulary import CODE_WORDS, INPUT_CLASSES, OTHERWISE, Atom, Rounding
from specs.model.yaml_file import YamlFile, parse_yaml, read_yaml
from specs.outcomes import Anything, Behaves, Outcome, Round, outcome_of
from specs.totality import can_have, partition_atoms, possible_atoms

SHIPPED = Path(__file__).with_name("rules")


def _check_answer(word: str) -> str:
    known = (*behaviors(), *OUTCOME_WORDS)
    if word not in known and not HEX.fullmatch(word):
        raise ValueError(
            f"`{word}` is neither a behavior nor an outcome; {did_you_mean(word, known)}"
            "`castigate rules` shows those of the shipped rules"
        )
    return word


AnswerWord = Annotated[
    str, AfterValidator(_check_answer), WithJsonSchema({"type": "string", "minLength": 1})
]


class Conditions(StrictModel):
    """The pairs that a choice is for, by names or kinds of their dtypes."""

    from_: WordList = Field(alias="from")
    to: WordList


class ChoiceEntry(StrictModel):
    """The answer to the open inputs of some pairs: one for all, or one for each input class."""

    clause: Text
    when: Conditions
    then: AnswerWord | dict[InputClass, AnswerWord]

    @property
    def answers(self) -> dict[str, str]:
        """The answer for each input class; one answer for all has the class `otherwise`."""
        return {"otherwise": self.then} if isinstance(self.then, str) else dict(self.then)


def _names(words: list[str], fmt: Format) -> bool:
    return any(
        word in (fmt.name, fmt.kind, "any") or (word == "numeric" and fmt.is_numeric)
        for word in words
    )


class HouseRulesEntry(StrictModel):
    """The content of a file of house rules: the documents they are for, and their choices."""

    rules: Identifier
    title: Text
    text: Text
    note: Text | None = None
    documents: Annotated[list[str], Field(min_length=1)]
    choices: Annotated[dict[Identifier, ChoiceEntry], Field(min_length=1)]


@dataclass(frozen=True, eq=False)
class HouseRules:
    """House rules, and the file they come from."""

    entry: HouseRulesEntry
    source: YamlFile
    content: str
    """The text of the file, which a run keeps."""

    @property
    def name(self) -> str:
        return self.entry.rules

    @property
    def digest(self) -> str:
        """The sha256 of the file."""
        return sha256(self.content.encode()).hexdigest()

    def rule_name(self, choice: str) -> str:
        """Return the name under which verdicts report a choice as a broken rule."""
        return f"{self.name}.{choice}"

    def rule_entries(self) -> Mapping[str, RuleEntry]:
        """Return the choices as rules of a document, so that reports can show their clauses."""
        return {
            self.rule_name(name): RuleEntry.model_validate(
                {"clause": choice.clause, "level": "required", "when": {}, "then": "unspecified"}
            )
            for name, choice in self.entry.choices.items()
        }


_own: dict[str, HouseRules] = {}
"""House rules of users, by name."""


@cache
def shipped_rules() -> dict[str, HouseRules]:
    """Return the house rules that ship, by name."""
    return {rules.name: rules for rules in map(load_rules, sorted(SHIPPED.glob("*.yaml")))}


def known_rules() -> dict[str, HouseRules]:
    """Return all house rules of this process by name: those that ship and those registered."""
    return {**shipped_rules(), **_own}


def rules_texts(documents: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return name and text of each of the house rules in document names, each once.

    A document with house rules is named as ``onnx-cast+java:25``; names of unknown rules are left
    out.
    """
    words = (name.partition(":")[0].partition(JOINT)[2] for name in documents)
    known = known_rules()
    return tuple((word, known[word].content) for word in dict.fromkeys(words) if word in known)


def load_rules(path: Path) -> HouseRules:
    """Read a file of house rules; raise DocumentError with file, line and key if it is invalid."""
    return _validated(read_yaml(path), path.read_text("utf-8"))


def know_rules(name: str, content: str) -> None:
    """Register house rules from their text, as a run stores it, under the name in the text.

    Raise CastigateError if the text is invalid, or if other house rules have this name.
    """
    if name not in shipped_rules() or shipped_rules()[name].content != content:
        register(_validated(parse_yaml(Path(f"{name}.yaml"), content), content))


def register(rules: HouseRules) -> None:
    """Register house rules of a user; raise CastigateError if others have their name."""
    known = known_rules().get(rules.name)
    if known is not None and known.content != rules.content:
        raise CastigateError(
            f"{rules.source.path}: other house rules have the name `{rules.name}`; rename these"
        )
    if known is None:
        _own[rules.name] = rules


def rules_named(word: str) -> HouseRules:
    """Return the house rules that a name or a path means; those of a file are registered.

    Raise CastigateError if there are none, if the file is invalid, or if others have its name.
    """
    known = known_rules()
    if word in known:
        return known[word]
    if not Path(word).is_file():
        raise CastigateError(
            f"`{word}` is neither house rules nor a file of them; {did_you_mean(word, known)}"
            f"the rules are {', '.join(known)}"
        )
    rules = load_rules(Path(word))
    register(rules)
    return rules


def _validated(source: YamlFile, content: str) -> HouseRules:
    if not isinstance(source.data, dict):
        raise source.error((), "house rules are a mapping that begins with `rules: NAME`")
    entry = validated(HouseRulesEntry, source)
    for name, choice in entry.choices.items():
        for key, word in _unknown_words(choice):
            known = (*formats(), *KIND_WORDS)
            message = f"`{word}` is no dtype and no kind of dtypes; {did_you_mean(word, known)}"
            raise source.error(("choices", name, "when", key), message.rstrip("; "))
    return HouseRules(entry, source, content)


def _unknown_words(choice: ChoiceEntry) -> Iterator[tuple[str, str]]:
    for key, words in (("from", choice.when.from_), ("to", choice.when.to)):
        yield from ((key, word) for word in words if word not in (*formats(), *KIND_WORDS))


def choice_for(rules: HouseRules, source: Format, target: Format) -> tuple[str, ChoiceEntry] | None:
    """Return the name and the entry of the choice that house rules make for a pair, if any.

    Raise DocumentError if there are several.
    """
    found = [
        (name, choice)
        for name, choice in rules.entry.choices.items()
        if _names(choice.when.from_, source) and _names(choice.when.to, target)
    ]
    if len(found) > 1:
        names = " and ".join(name for name, _ in found)
        message = f"{names} both speak of {source.name} to {target.name}; narrow one `when`"
        raise rules.source.error(("choices", found[1][0]), message)
    return found[0] if found else None


def decided(rules: HouseRules, case: Case, ruling: Ruling) -> Ruling:
    """Return the ruling of a case with its open branches decided by house rules.

    It is ``ruling`` itself if no choice is for the pair, or no branch is open. Raise DocumentError
    if several choices are for the pair, an open input gets no possible answer, no input class has
    just the inputs of an answer, or answers round in several ways.
    """
    source, target = format_named(case.source), format_named(case.target)
    found = choice_for(rules, source, target)
    if found is None or not ruling.open_branches or ruling.partition is None:
        return ruling
    name, choice = found
    branches = list(_decided_branches(rules, name, choice, ruling))
    roundings = {each.outcome.rounding for each in branches if isinstance(each.outcome, Round)}
    if len(roundings) > 1:
        ways = ", ".join(sorted(roundings))
        raise _error(rules, name, f"{case.id} would round in more than one way: {ways}")
    rounding: Rounding = roundings.pop() if roundings else ruling.rounding
    partition = partition_atoms(source, target, tuple(each.input_class for each in branches))
    assert partition.gap is None, (case.id, partition.gap)
    if partition.overlap is not None:
        # Two answers for parts of what `otherwise` takes, of which no class takes just one.
        raise _error(rules, name, f"its answers for {case.id} are for no input class of their own")
    used = tuple(branches[index] for index in partition.used)
    return replace(ruling, branches=used, partition=partition, rounding=rounding)


def _decided_branches(
    rules: HouseRules, name: str, choice: ChoiceEntry, ruling: Ruling
) -> Iterator[Branch]:
    assert ruling.partition is not None
    taken_by = [frozenset(ruling.partition.atoms_of[at]) for at in ruling.partition.used or (0,)]
    for branch, taken in zip(ruling.branches, taken_by, strict=True):
        if not isinstance(branch.outcome, Anything):
            yield branch
            continue
        for word, parts in _answered(rules, name, choice, ruling, taken):
            outcome = answer_outcome(rules, name, word, ruling.source, ruling.target)
            pair = ruling.source, ruling.target
            impossible = [each for each in parts if not can_have(outcome, each, *pair)]
            if impossible:
                message = (
                    f"`{word}` says nothing of an input of {ruling.source.name} that is "
                    f"{impossible[0]}; add an answer for its class to `then`"
                )
                raise _error(rules, name, message)
            input_class = _class_of(ruling, branch, taken, parts)
            if input_class is None:
                message = (
                    f"no input class is exactly those inputs from {ruling.source.name} to "
                    f"{ruling.target.name} that {branch.rule} leaves open and that `{word}` is "
                    f"for; use the class `{branch.input_class}`"
                )
                raise _error(rules, name, message)
            yield replace(
                branch,
                input_class=input_class,
                outcome=outcome,
                level="required",
                rule=rules.rule_name(name),
                clause=choice.clause,
            )


def _answered(
    rules: HouseRules, name: str, choice: ChoiceEntry, ruling: Ruling, taken: frozenset[Atom]
) -> Iterator[tuple[str, frozenset[Atom]]]:
    """Yield the words of a choice that answer atoms of an open branch, each with these atoms.

    ``taken`` are all atoms of the branch. Raise DocumentError if one has no answer.
    """
    left = set(taken)
    for input_class, word in choice.answers.items():
        if input_class == OTHERWISE:
            continue
        parts = frozenset(filter(INPUT_CLASSES[input_class], left))
        if parts:
            yield word, parts
        left -= parts
    if left and OTHERWISE not in choice.answers:
        one = next(atom for atom in possible_atoms(ruling.source, ruling.target) if atom in left)
        message = (
            f"it says nothing of an input of {ruling.source.name} to {ruling.target.name} that is "
            f"{one}; add its class, or `otherwise`, to `then`"
        )
        raise _error(rules, name, message)
    if left:
        yield choice.answers[OTHERWISE], frozenset(left)


def _class_of(
    ruling: Ruling, branch: Branch, taken: frozenset[Atom], parts: frozenset[Atom]
) -> str | None:
    """Return an input class that takes, of the pair's atoms, exactly ``parts``, or None.

    ``taken`` are the atoms of ``branch``. The result is the branch's own class if ``parts`` are all
    of these, or if that class is `otherwise` and no other fits.
    """
    if parts == taken:
        return branch.input_class
    possible = possible_atoms(ruling.source, ruling.target)
    for word, takes in INPUT_CLASSES.items():
        if parts == frozenset(filter(takes, possible)):
            return word
    return OTHERWISE if branch.input_class == OTHERWISE else None


def answer_outcome(
    rules: HouseRules, name: str, word: str, source: Format, target: Format
) -> Outcome:
    """Return the outcome of a word of a choice; a behavior only if the target is integral.

    ``name`` is the choice's. Raise DocumentError if the word is no answer for this pair.
    """
    if target.is_integral and word in behaviors() and word not in CODE_WORDS:
        behavior = behaviors()[word]
        if source.kind not in behavior.from_ or target.kind not in behavior.to:
            message = f"`{word}` is no behavior of casts from {source.name} to {target.name}"
            raise _error(rules, name, message)
        if any(format_named(each).kind == "float" for each in behavior.on_the_way):
            message = f"`{word}` rounds to another float first, which no house rule may require"
            raise _error(rules, name, message)
        return Behaves(word)
    try:
        return outcome_of(word, target)
    except (DocumentError, ValueError):
        message = f"`{word}` is no answer of {target.name}; castigate explain shows what it has"
        raise _error(rules, name, message) from None


def _error(rules: HouseRules, name: str, message: str) -> DocumentError:
    return rules.source.error(("choices", name), f"{name}: {message}")
