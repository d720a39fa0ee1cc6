"""Questions as people write them, put into the words that ``specs.questions`` reads.

People paste what they have: ``"f32 -> i8 300"`` as one argument, ``cast 300 float32 int8``,
``float32(nan) to int32``, ``jax float32 to int8 300``. These are rewritten only if the plain
reading fails, so that no question which has a meaning gets another one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from oracles.registry import BUILTINS, NAMES
from specs.errors import CastigateError
from specs.formats import dtypes_spelled
from specs.loader import document_word
from specs.questions import TO, documents_called, parts_of, read_question

FILLERS = frozenset(("a", "and", "cast", "casting", "convert", "converting", "does", "from"))
FILLERS |= {"gives", "is", "of", "the", "value", "what", "with"}
FRAMEWORKS = frozenset((*BUILTINS, *NAMES))
ARROWS = ("->", "=>", "→", ">", "as", "in", "into")
"""Words that people write in the place of ``to``."""
CALL = re.compile(r"([\w.]+)\((.*)\)")
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
    return rewritten if rewritten and _is_read(rewritten) else plain


def _is_read(words: Sequence[str]) -> bool:
    """Whether a question has a meaning; one that begins with a framework must ask for a cast."""
    try:
        parts = parts_of(words)
        if len(parts.path) > len(("source", "target")):
            return True  # A chain of casts has readers of its own.
        question = read_question(words)
    except CastigateError:
        return False
    return words[0].lower() not in FRAMEWORKS or question.is_open


def _rewritten(words: Sequence[str]) -> list[str]:
    """Return a question's words without fillers: documents, dtypes, and values behind them.

    The list is empty if a word before the second dtype is unknown.
    """
    tokens = [*words[0].split(), *words[1:]]
    path: list[str] = []
    inputs: list[str] = []
    dtypes = 0
    for token in tokens:
        word = token.rstrip(":,;=")
        is_filler = word.lower() in FILLERS | FRAMEWORKS or not word
        if dtypes > 1:
            inputs += [] if is_filler else [word]
        elif found := CALL.fullmatch(word):
            dtypes += 1
            path.append(found[1])
            inputs.append(found[2])
        elif dtypes_spelled(word):
            dtypes += 1
            path.append(word)
        elif word.lower() in ARROWS or word == TO:
            path.append(TO)
        elif NUMBER.fullmatch(word):
            inputs.append(word)
        elif not dtypes and documents_called(word) and not is_filler:
            path.append(word)
        elif not is_filler:
            return []
    return [*path, *inputs]
