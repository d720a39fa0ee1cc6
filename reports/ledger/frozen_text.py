"""The texts that ledgers have hashed since before problems were data. They are frozen.

A ledger holds a digest of what is wrong with a case, and some of these digests were made of
sentences. So the constant part of a sentence is taken here as it was then, by patterns and all: to
read the fields of a problem instead would give other texts, and every ledger would change. Nothing
else may call this.
"""

from __future__ import annotations

import re

from specs.cases import Case

ERROR_CLASS = re.compile(r"(?:^|: )([A-Za-z_]\w*): ")
"""The class of an error within a sentence."""
NUMBER = re.compile(r"\b(?:0x[0-9a-f]+|\d+)\b")


def frozen_text(case: Case, sentence: str, *, without_numbers: bool = False) -> str:
    """Reduce a sentence to its constant part: an error's class, or our words without dtypes."""
    error = ERROR_CLASS.search(sentence)
    roles = {case.target: "target", case.source: "source"}
    if error is not None:
        text = error[1]
    else:
        text = re.sub(r"\w+", lambda word: roles.get(word[0], word[0]), sentence)
    return NUMBER.sub("0", text) if without_numbers else text
