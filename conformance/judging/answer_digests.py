"""Digests of the answers that a judge got, for runs that do not keep them whole.

The answers to a cast are kept: one row for each case. Other operations are asked many tensors of
many megabytes, most of whose elements a document decides: another answer there is another verdict
or another problem. So of these a run keeps digests, and a few free answers, which a document leaves
open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import blake2b
from itertools import islice
from typing import Any

import numpy as np

from oracles.backend.replies import Answered, Declined, Reply
from oracles.protocol import Bits
from reports.judgement import AnswerDigest, AnswerExample, Judgement

DIGEST_BYTES = 8
MOST_EXAMPLES = 32
"""The most free answers that are kept of a case."""
MOST_OF_A_TENSOR = 4
"""The most of them from one tensor."""


class AnswerDigester:
    """Digests the tensors of a case and the replies to them, which a judge adds one by one."""

    def __init__(self) -> None:
        self._asked = blake2b(digest_size=DIGEST_BYTES)
        self._answers = blake2b(digest_size=DIGEST_BYTES)
        self._examples: dict[str, AnswerExample] = {}
        self._is_answered = False
        self.varies = False
        """Set where the same tensor got two answers, so that no digest of them means anything."""

    def add(self, tensors: Mapping[str, Bits], reply: Reply) -> None:
        """Add a request's tensors by name, and what came of it: an answer, or the kind of reply.

        Requests that depend on answers are left out: other runs would not make them.
        """
        for name, bits in tensors.items():
            _update(self._asked, name, bits)
        self._asked.update(b";")
        self._answers.update(type(reply).__name__.encode())
        self._is_answered |= not isinstance(reply, Declined)
        if isinstance(reply, Answered):
            results = reply.value if isinstance(reply.value, Mapping) else {"": reply.value}
            for name, bits in results.items():
                _update(self._answers, name, bits)

    @property
    def has_all_examples(self) -> bool:
        """Whether further examples are not kept."""
        return len(self._examples) >= MOST_EXAMPLES

    def show(self, examples: Iterable[AnswerExample]) -> None:
        """Keep some of the free answers to a tensor; a later one to the same input is dropped."""
        for each in islice(examples, MOST_OF_A_TENSOR):
            if not self.has_all_examples:
                self._examples.setdefault(each.given, each)

    def added_to(self, judgement: Judgement) -> Judgement:
        """Return the judgement with the digest; as it is if all is declined, or answers vary."""
        if not self._is_answered or self.varies:
            return judgement
        digest = AnswerDigest(
            self._asked.hexdigest(), self._answers.hexdigest(), tuple(self._examples.values())
        )
        return replace(judgement, answer_digest=digest)


def spread(mask: Bits) -> list[int]:
    """Return the flat indices of ``MOST_OF_A_TENSOR`` marked elements or less, evenly spread."""
    marked = np.flatnonzero(mask)
    few = np.linspace(0, max(0, marked.size - 1), MOST_OF_A_TENSOR).astype(np.intp)
    return list(dict.fromkeys(marked[few].tolist())) if marked.size else []


def _update(digest: Any, name: str, bits: Bits) -> None:
    digest.update(f"{name} {bits.dtype} {bits.shape} ".encode())
    digest.update(repr(bits.tolist()).encode() if bits.dtype == object else bits.tobytes())
