"""Questions as people write them, put into the words that ``specs.questions`` reads.

People paste what they have: ``"f32 -> i8 300"`` as one argument, ``cast 300 float32 int8``,
``float32(nan) to int32``, ``jax float32 to int8 300``. These are rewritten only if the plain
reading fails, so that no question which has a meaning gets another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from conformance.families.cast.pair_comparison import Named
from oracles.registry import BUILTINS, NAMES
from specs.errors import CastigateError
from specs.formats import dtype_spelled, dtypes_spelled, format_named
from specs.loader import document_word
from specs.questions import TO, documents_called, parts_of, read_question

FILLERS = frozenset(("a", "and", "cast", "casting", "convert", "converting", "does", "from"))
FILLERS |= {"gives", "is", "of", "the", "value", "what", "with"}
FRAMEWORKS = frozenset((*BUILTINS, *NAMES))
MODULES = NAMES | {"jnp": "jax"}
"""Backends by the names that people use for them, also before the point of a dtype."""
ARROWS = ("->", "=>", "→", ">", "as", "in", "into")
"""Words that people write in the place of ``to``."""
PUNCTUATION = ":,;=?"
"""The characters that people write behind a word."""
CALL = re.compile(r"([\w.]+)\((.*)\)")
METHOD = re.compile(r"(.+\))\.(?:astype|to)\((.+)\)")
"""Matches code such as ``np.float32(300).astype(np.uint8)``."""
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+")
"""Matches what may be a number or two."""
NUMBER = re.compile(r"[+-]?(\d.*|\.\d+.*|nan|inf|infinity|true|false)", re.IGNORECASE)


def question_words(words: Sequence[str]) -> list[str]:
    """Return the words of a question so that ``read_question`` understands them, if it can.

    The file of a document of one's own is registered, and its name stands for it. Raise
    CastigateError if the file is invalid.
    """
    plain = [document_word(words[0]), *words[1:]]
    if _is_read(plain):
        return plain
    rewritten = _rewritten(plain)
    if rewritten and _is_read(rewritten):
        return rewritten
    _refuse(plain)
    return plain


def _refuse(words: Sequence[str]) -> None:
    """Raise CastigateError for a question in which a value has one dtype, or an unknown target."""
    tokens = [token.rstrip(PUNCTUATION) for token in _tokens(words)]
    for before, token in pairwise(tokens):
        if (before.lower() in ARROWS or before == TO) and not is_value(token):
            dtype_spelled(token)
    dtypes = [each for each in tokens if dtypes_spelled(each)]
    values = [each for each in tokens if is_value(each)]
    known = {*dtypes, *values, TO, *ARROWS}
    if len(dtypes) == 1 and values and known.issuperset(tokens):
        is_target = tokens.index(values[0]) < tokens.index(dtypes[0])
        pair = ["float32", *dtypes] if is_target else [*dtypes, "int8"]
        raise CastigateError(
            f"`{' '.join(words)[:100]}` names one dtype, `{dtypes[0]}`; name two, that of the value"
            f" first: castigate explain {' '.join([*pair, *values])[:100]}"
        )


def is_value(word: str) -> bool:
    """Return whether a word is spelled like a number or a truth value."""
    return NUMBER.fullmatch(word) is not None


def names_in(words: Sequence[str]) -> Named:
    """Return the frameworks that a question names, also as ``torch`` in ``torch.float32``.

    Say too whether it names documents. Raise CastigateError as ``parts_of`` does.
    """
    found: dict[str, str] = {}
    for token in _tokens(words):
        word = token.lower().rstrip(PUNCTUATION)
        for each in (word, word.partition(".")[0]):
            name = MODULES.get(each, each)
            if name in BUILTINS:
                found.setdefault(name, each)
    is_about_documents = bool(parts_of(question_words(words)).document)
    return Named(tuple(found), is_about_documents, tuple(found.values()))


def separate_values(words: Sequence[str]) -> list[str]:
    """Return the values of a question, also those with commas between, as in ``300,nan,-1.5``.

    Two whole numbers with a comma, such as ``1,5``, stay one word: people may mean 1.5.
    """
    values: list[str] = []
    for word in words:
        parts = [part for each in word.split(",") if (part := each.strip())]
        is_list = "," in word and parts and all(map(is_value, parts))
        values += parts if is_list and not DECIMAL_COMMA.fullmatch(word) else [word]
    return values


def _is_read(words: Sequence[str]) -> bool:
    """Return whether ``read_question`` reads a question as its writer may have meant it.

    A question that begins with a framework must ask for a cast, and a word such as ``of`` or an
    arrow must not have become one of its numbers.
    """
    try:
        parts = parts_of(words)
        if len(parts.path) > len(("source", "target")):
            return not _has_fillers(parts.inputs)  # A chain of casts has readers of its own.
        question = read_question(words)
    except CastigateError:
        return False
    is_text = format_named(question.cases[0].source).kind == "text"
    if not is_text and _has_fillers(question.inputs):
        return False
    return words[0].lower() not in FRAMEWORKS or question.is_open


def _has_fillers(inputs: Sequence[str]) -> bool:
    return any(
        not each.strip(PUNCTUATION) or each.lower() in FILLERS | FRAMEWORKS | {*ARROWS}
        for each in inputs
    )


def _tokens(words: Sequence[str]) -> list[str]:
    """Return the words of a question, also those within its first argument.

    An arrow before a framework, as in ``300 in torch``, is left out: no dtype follows.
    """
    tokens: list[str] = []
    for word in (*words[0].split(), *words[1:]):
        found = METHOD.fullmatch(word)
        if tokens and tokens[-1].lower() in ARROWS and word.lower() in FRAMEWORKS:
            tokens.pop()
        tokens += [found[1], TO, found[2]] if found else [word]
    return tokens


def _rewritten(words: Sequence[str]) -> list[str]:
    """Return a question's words without fillers: documents, dtypes, and values behind them.

    The list is empty if a word before the second dtype is unknown. A later word is a dtype if it
    stands behind an arrow, and else a value.
    """
    path: list[str] = []
    inputs: list[str] = []
    dtypes = 0
    for token in _tokens(words):
        word = token.rstrip(PUNCTUATION)
        is_filler = word.lower() in FILLERS | FRAMEWORKS or not word
        if word.lower() in ARROWS or word == TO:
            path.append(TO)
        elif dtypes > 1 and not (path[-1] == TO and dtypes_spelled(word)):
            inputs += [] if is_filler else [word]
        elif found := CALL.fullmatch(word):
            dtypes += 1
            path.append(found[1])
            inputs.append(found[2].strip("'\""))
        elif dtypes_spelled(word):
            dtypes += 1
            path.append(word)
        elif is_value(word):
            inputs.append(word)
        elif not dtypes and documents_called(word) and not is_filler:
            path.append(word)
        elif not is_filler:
            return []
    return [*path, *inputs]
