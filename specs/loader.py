"""Loads documents from YAML and runs every check that needs no case."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from pathlib import Path

from specs.cases import JOINT
from specs.errors import CastigateError
from specs.formats import FORMATS_FILE, SMALL_FLOATS_FILE, either
from specs.house_rules import HouseRules, known_rules, shipped_rules
from specs.model.document import DocumentEntry
from specs.model.document_checks import document_errors, raw_errors
from specs.model.strict_model import validated
from specs.model.yaml_file import YamlFile, check_cached, parse_yaml, read_yaml

DOCUMENTS = Path(__file__).with_name("documents")
YARDSTICKS = Path(__file__).with_name("yardsticks")
"""The folder of rules without a page. They judge chains, codecs, threads and checkpoints."""
YARDSTICK_COMMANDS = {
    "small-floats": "codec",
    "checked-cast": "docket",
    "ieee-casts": "export vectors",
}
"""The command that judges by a yardstick, for those that are not for chains."""
MOST_NEAR, CUTOFF = 3, 0.55
"""How many documents an error suggests, and how similar they are at least to the wrong name."""
OF_A_RUN = Path("document.yaml")
"""The path by which errors name a user's own document that is read from a run, not from a file."""
OWN_FILE = re.compile(r"(?P<path>.*\.ya?ml)(?::(?P<version>.*))?", re.IGNORECASE)
"""Matches the path of a user's own document, and a version behind it."""


@dataclass(frozen=True, eq=False)
class Document:
    """A document: its validated YAML, and the file with the line of each part.

    Two are equal only if they are the same object.
    """

    entry: DocumentEntry
    source: YamlFile
    page: Document | None = None
    """The same document without the house rules, or None if this one has none."""
    house: HouseRules | None = None
    content: str | None = None
    """The text of a user's own document, which a run keeps; None if the document ships."""

    @property
    def name(self) -> str:
        return self.entry.document

    @property
    def digest(self) -> str:
        """The sha256 of the YAML file; with house rules, of the digests of both files."""
        text = self.content
        own = _digest(self.source.path) if text is None else sha256(text.encode()).hexdigest()
        return own if self.house is None else sha256((own + self.house.digest).encode()).hexdigest()


class Documents(Mapping[str, Document]):
    """The documents of a folder by name, each loaded on first access, and those of users.

    The name of a document with house rules finds it too, but an iteration leaves it out.
    """

    def __init__(self, folder: Path) -> None:
        self._paths = {path.stem.replace("_", "-"): path for path in sorted(folder.glob("*.yaml"))}
        self._loaded: dict[str, Document] = {}
        self.own: dict[str, Document] = {}
        """The documents of users by name, which ``register_document`` adds."""

    def __getitem__(self, name: str) -> Document:
        if JOINT in name:
            return self._with_house_rules(name)
        if name in self.own:
            return self.own[name]
        if name not in self._loaded:
            document = load_document(self._paths[name])
            if document.name != name:
                message = (
                    f"document `{document.name}` is in a file named for `{name}`;"
                    " rename the file or the document"
                )
                raise document.source.error(("document",), message)
            self._loaded[name] = document
        return self._loaded[name]

    def _with_house_rules(self, name: str) -> Document:
        if name not in self:
            raise KeyError(name)
        if name not in self._loaded:
            page, _, rules = name.partition(JOINT)
            self._loaded[name] = with_house_rules(self[page], known_rules()[rules])
        return self._loaded[name]

    def __contains__(self, name: object) -> bool:
        page, joint, rules = str(name).partition(JOINT)
        is_known = page in self._paths or page in self.own
        if not is_known or not joint:
            return is_known and not joint
        return rules in known_rules() and page in known_rules()[rules].entry.documents

    def __iter__(self) -> Iterator[str]:
        return iter((*self._paths, *self.own))

    def __len__(self) -> int:
        return len(self._paths) + len(self.own)

    @property
    def digests(self) -> dict[str, str]:
        """The sha256 of every document's YAML file, by name."""
        own = {name: document.digest for name, document in self.own.items()}
        return {name: _digest(path) for name, path in self._paths.items()} | own


def with_house_rules(page: Document, rules: HouseRules) -> Document:
    """Return the document ``PAGE+RULES``: ``page`` with house rules and without worked examples."""
    changed = {
        "document": f"{page.name}{JOINT}{rules.name}",
        "title": f"{page.entry.title}, with the house rules {rules.name}",
        "rules": {**rules.rule_entries(), **page.entry.rules},
        "examples": {},
    }
    return Document(page.entry.model_copy(update=changed), page.source, page, rules)


def _digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()


@cache
def documents() -> Documents:
    """Return the shipped documents by name."""
    return Documents(DOCUMENTS)


@cache
def yardsticks() -> Documents:
    """Return the shipped yardsticks, which are rules without a page, by name."""
    return Documents(YARDSTICKS)


def check_cached_documents(names: Iterable[str]) -> None:
    """Raise DocumentError if the cache holds other content than the files of these documents.

    The files of formats are checked too; each file is checked once per process. Any program of the
    same user can write to the cache.
    """
    sources = {document_named(name.partition(":")[0]).source.path for name in names}
    for path in (FORMATS_FILE, SMALL_FLOATS_FILE, *sorted(sources)):
        _check_cached(path)


_check_cached = cache(check_cached)


def document_named(name: str) -> Document:
    """Return the document or yardstick of a name; raise CastigateError if it is unknown."""
    known = documents()
    if name not in known and name in yardsticks():
        return yardsticks()[name]
    if name not in known:
        begun = [each for each in known if each.startswith(f"{name}-")][:MOST_NEAR]
        near = begun or get_close_matches(name, list(known), MOST_NEAR, CUTOFF)
        meant = f"did you mean {either([f'`{each}`' for each in near])}? " if near else ""
        raise CastigateError(f"unknown document `{name}`; {meant}castigate specs lists all")
    return known[name]


def document_and_version(
    word: str, *, takes_yardsticks: bool = False
) -> tuple[Document, str | None]:
    """Return the shipped document that ``name`` or ``name:version`` means, and that version.

    The version is None if it is not named. Raise CastigateError if there is no such document or
    version, or if it is a yardstick, unless ``takes_yardsticks``.
    """
    name, colon, version = word.partition(":")
    if name in yardsticks() and not takes_yardsticks:
        raise CastigateError(
            f"{name} is no document but a yardstick, by which no backend is judged; use"
            f" castigate {YARDSTICK_COMMANDS.get(name, f'chains {name}')}"
        )
    if not colon:
        return document_named(name), None
    # Without a version behind its colon, the word as a whole is no name.
    document = document_named(name if version else word)
    if version not in (known := document.entry.versions):
        raise CastigateError(f"{name} has no version `{version}`; it has {', '.join(known)}")
    return document, version


def document_word(word: str) -> str:
    """Return the name, with the version if one is given, of a document that a user names.

    A word such as ``mine.yaml`` or ``mine.yaml:2`` is the file of a document of the user's own,
    which is registered. Any other word comes back as it is. Raise CastigateError if the file does
    not exist or is invalid, or if its document has the name of another.
    """
    if (found := OWN_FILE.fullmatch(word)) is None:
        return word
    path = Path(found["path"])
    if not path.is_file():
        raise CastigateError(f"document {path}: there is no such file; give its path")
    document = replace(load_document(path), content=path.read_text("utf-8"))
    register_document(document)
    return f"{document.name}:{found['version']}" if found["version"] else document.name


def typed_name(name: str) -> list[str]:
    """Return the words by which a command takes a document or a case id of this process.

    A document and house rules of a user are named by their files, as far as these are known.
    """
    edition, colon, rest = name.partition(":")
    page, joint, rules = edition.partition(JOINT)
    house = known_rules().get(rules)
    options = []
    if house is not None and rules not in shipped_rules():
        joint, rules, options = "", "", ["--rules", str(house.source.path)]
    own = documents().own.get(page)
    if own is not None and own.source.path != OF_A_RUN:
        page = str(own.source.path)
    return [f"{page}{joint}{rules}{colon}{rest}", *options]


def register_document(document: Document) -> None:
    """Register a user's own document; raise CastigateError if another one has its name."""
    known = documents()
    if document.name in known and known[document.name].content != document.content:
        raise document.source.error(
            ("document",), f"another document has the name `{document.name}`; rename this one"
        )
    known.own.setdefault(document.name, document)


def know_document(content: str) -> None:
    """Register a user's own document from its text, as a run stores it.

    Raise CastigateError if the text is invalid, or if another document has the name in it.
    """
    document = _checked(parse_yaml(OF_A_RUN, content))
    register_document(replace(document, content=content))


def own_documents(names: Iterable[str]) -> dict[str, str]:
    """Return the texts of the users' own documents among names of documents, by name."""
    own = documents().own
    words = (name.partition(":")[0].partition(JOINT)[0] for name in names)
    return {word: own[word].content or "" for word in dict.fromkeys(words) if word in own}


def load_document(path: Path) -> Document:
    """Load and check one document; raise DocumentError with file, line and rule of an error."""
    return _checked(read_yaml(path))


def _checked(source: YamlFile) -> Document:
    if not isinstance(source.data, dict):
        raise source.error((), "a document is a mapping that begins with `document: NAME`")
    for location, message in raw_errors(source.data):
        raise source.error(location, message)
    entry = validated(DocumentEntry, source)
    for location, message in document_errors(entry):
        raise source.error(location, message)
    return Document(entry, source)
