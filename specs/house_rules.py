"""House rules, read from YAML: the answers a user requires where a document leaves them open.

"The document leaves it open" is the true answer to most disputes, but does not help a user who has
to ship a model. House rules choose one of the answers that a document allows. They are not the
page's: a document with them is a document of its own, named ``DOCUMENT+RULES``, whose other rules
are those of the page. Backends are asked the document's own cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, WithJsonSchema

from specs.behaviors import behaviors
from specs.cases import JOINT
from specs.errors import CastigateError, did_you_mean
from specs.formats import Format, formats
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
from specs.model.yaml_file import YamlFile, parse_yaml, read_yaml

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

    def speaks_of(self, source: Format, target: Format) -> bool:
        """Return whether the choice is for a pair."""
        return _names(self.when.from_, source) and _names(self.when.to, target)


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
