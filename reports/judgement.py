"""A judgement: the verdict on a case on a backend, and the problems that led to it.

Part files serialize the field names of this class, so that renaming one changes the format.

Arrays of inputs and answers are stored under digests of their content. Neighboring patterns often
differ by the same step, so that an array is encoded as its differences, which compress better than
the patterns themselves.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from reports.problem_words import joined_words
from reports.problems import BrokenRule, Fault, Problem, WrongValues, wrong_inputs
from specs.formats import format_named

NEXT_SCRIPT = "\n# Another fault of this case:\n"
"""Separates the script for a wrong value from the script for another fault of a case."""


@dataclass(frozen=True, repr=False)
class Judgement:
    """The verdict on a case or a check on a backend, with all that is needed to explain it.

    ``check`` is the name of a check on a dtype pair, for which ``case`` is one of the pair's cases;
    it is empty in the judgement of a case. ``reaches_ends`` says that the first and the last input
    of every run of failing inputs were found. ``reproduction`` is a script that shows a failure.
    ``answered`` is None where no answers are kept, ``answer_digest`` where no digest of them is.
    """

    case: str
    backend: str
    verdict: Verdict
    problems: tuple[Problem, ...] = ()
    inputs: int = 0
    open_inputs: int = 0
    reaches_ends: bool = False
    reproduction: str = ""
    road: str = ""
    answered: InputsAndAnswers | None = None
    check: str = ""
    further: tuple[Problem, ...] = ()
    """Further problems of the same failure, for comparisons; messages and ledgers omit them."""
    answer_digest: AnswerDigest | None = None

    def __repr__(self) -> str:
        named = f"{self.case} {self.check}".rstrip()
        counts = f"{self.wrong:,} of {self.inputs:,} inputs wrong"
        return f"<Judgement {named} on {self.backend}: {self.verdict}, {counts}>"

    @cached_property
    def message(self) -> str:
        """All problems but wrong values in words; empty if there are none."""
        return joined_words(self.problems)

    @property
    def divergences(self) -> tuple[WrongValues, ...]:
        """The problems that are ``WrongValues``: one per broken rule and level."""
        return tuple(each for each in self.problems if isinstance(each, WrongValues))

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The problems other than ``WrongValues`` that name the rule they break."""
        return tuple(each for each in self.problems if isinstance(each, Fault) and each.rule)

    @property
    def broken_rules(self) -> tuple[BrokenRule, ...]:
        """The problems that break a rule: first those with wrong values, then the faults."""
        return (*self.divergences, *self.faults)

    @property
    def wrong(self) -> int:
        """The number of wrong inputs: the sum of ``wrong_inputs`` over ``problems``."""
        return sum(map(wrong_inputs, self.problems))


Verdict = Literal[
    "conforms",
    "violates",
    "deviates",
    "differs",
    "open",
    "unsupported",
    "error",
    "crashed",
    "not-run",
]
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)
"""Every verdict, in the order of table columns and of the codes in data files."""

VERDICT_OF_LEVEL: dict[str, Verdict] = {"required": "violates", "recommended": "deviates"}
"""The verdict on a backend that breaks a rule of this level in a document that it claims."""


def verdict_of(problems: Iterable[WrongValues], is_open: bool = False) -> Verdict:
    """Return the verdict on answers; ``is_open`` says that any answer to the case is allowed."""
    levels = {each.level for each in problems}
    if levels:
        return "violates" if "required" in levels else "deviates"
    return "open" if is_open else "conforms"


BREAKS_RULE: tuple[Verdict, ...] = ("violates", "deviates")
"""The verdicts that say that a rule of a claimed document is broken."""
NO_ANSWER: tuple[Verdict, ...] = ("error", "crashed")
"""The verdicts where an answer was due and none came that can be compared."""
NOT_RUN: tuple[Verdict, ...] = ("unsupported", "not-run")
"""The verdicts where nothing was judged: the backend declined the case, or was never asked."""
IN_TURN = "asked in turn"
"""The first words about a case with the verdict `not-run` that another seed asks."""
FAILING: tuple[Verdict, ...] = (*BREAKS_RULE, *NO_ANSWER)
"""The verdicts that make a run exit with code 1."""
WRONG: tuple[Verdict, ...] = (*BREAKS_RULE, "differs", *NO_ANSWER)
"""Verdicts of which fewer are better. `differs` is among them, although it never fails a run."""
BY_SEVERITY: tuple[Verdict, ...] = (
    "open",
    "conforms",
    "differs",
    "deviates",
    "violates",
    "not-run",
    "unsupported",
    "error",
    "crashed",
)
"""From the best to the worst: the worst verdict on a part of a case's inputs is the case's."""

VERDICT_DIGITS: dict[str, str] = {verdict: str(index) for index, verdict in enumerate(VERDICTS)}
"""The character that stands for a verdict in data files."""

DIGITS = 32
"""Hex digits of a digest."""


@dataclass(frozen=True, eq=False)
class DatumArray:
    """An array of the patterns of one dtype, or of texts."""

    dtype: str
    values: NDArray[Any]

    @cached_property
    def data(self) -> bytes:
        """The values encoded as bytes that compress well; ``decode_array`` reads them."""
        storage = np.dtype(format_named(self.dtype).storage)
        if storage.kind == "O":
            texts = json.dumps(self.values.tolist(), ensure_ascii=False)
            return texts.encode("utf-8", "surrogatepass")
        if storage.kind == "V":
            return self.values.tobytes()
        steps = np.diff(self.values, prepend=storage.type(0))
        return steps.astype(storage.newbyteorder("<"), copy=False).tobytes()

    @cached_property
    def digest(self) -> str:
        """A text of hex digits that two arrays share only if dtype and values are the same."""
        return sha256(self.dtype.encode() + b" " + self.data).hexdigest()[:DIGITS]


def decode_array(dtype: str, data: bytes) -> DatumArray:
    """Decode the bytes that ``DatumArray.data`` made of an array of this dtype."""
    storage = np.dtype(format_named(dtype).storage)
    if storage.kind == "O":
        texts = json.loads(data.decode("utf-8", "surrogatepass"))
        values = np.empty(len(texts), object)
        values[:] = texts
        return DatumArray(dtype, values)
    if storage.kind == "V":
        return DatumArray(dtype, np.frombuffer(data, storage))
    steps = np.frombuffer(data, storage.newbyteorder("<")).astype(storage)
    return DatumArray(dtype, np.cumsum(steps, dtype=storage))


class SharedArrays:
    """Makes one ``DatumArray`` of each array, so that its digest is computed once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int], DatumArray] = {}

    def of(self, dtype: str, values: NDArray[Any]) -> DatumArray:
        """Return the ``DatumArray`` of these values, the same one for the same numpy array."""
        return self._known.setdefault((dtype, id(values)), DatumArray(dtype, values))


class InputsAndAnswers(NamedTuple):
    """The inputs of a case that a backend was given, and its answers to them."""

    inputs: DatumArray
    answers: DatumArray


@dataclass(frozen=True, slots=True)
class AnswerExample:
    """In words, an input to which a document allows several answers, and the one that it got."""

    given: str
    got: str


@dataclass(frozen=True, slots=True)
class AnswerDigest:
    """Digests of all inputs of a case and of the replies to them, where these are not kept whole.

    ``examples`` are a few of the answers. Where other answers change, the verdict or its problems
    mostly change too.
    """

    asked: str
    answers: str
    examples: tuple[AnswerExample, ...] = ()
