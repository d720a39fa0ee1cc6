"""The results that functions of ``castigate.py`` return: they print as lines and give tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from reports.counterexample.drawing import datum_text
from reports.findings.finding import Finding
from reports.findings.finding_text import counted, datum_words, example_words
from reports.grading.divergences import datum_of
from reports.judgement import WRONG, Judgement
from reports.problem_words import words
from reports.problems import WrongTensor
from specs.cases import Case
from specs.formats import format_named

if TYPE_CHECKING:
    import pyarrow as pa


OF_RUNS = ("first", "last", "answer", "last_answer")
"""The columns of runs of wrong inputs: the ends of each run, and the answers there."""


LONGEST_REPR = 200
"""pytest cuts the middle out of a longer text than 240 characters."""


class Printable:
    """A value that prints as its ``lines``, also in a notebook."""

    def lines(self) -> Iterator[str]:
        """Yield the lines that a terminal or a notebook shows."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"


@dataclass(frozen=True)
class WrongAnswer:
    """The simplest input that breaks a rule, its answer, and what the rule allows instead.

    Numbers are texts in hex, as ``castigate.explain`` takes them, and ``str`` shows their values.
    """

    case: Case
    rule: str
    level: str
    clause: str
    input: str
    answer: str
    allowed: tuple[str, ...]

    def __str__(self) -> str:
        allowed = " or ".join(datum_words(self.case.target, each) for each in self.allowed)
        return (
            f"{datum_words(self.case.source, self.input)} gives"
            f" {datum_words(self.case.target, self.answer)}, not {allowed}"
        )


@dataclass(frozen=True, repr=False)
class Result(Printable):
    """How a document or yardstick judges answers; it is false if some are wrong.

    ``findings`` are the causes of wrong answers. If ``is_whole``, every input of the source was
    asked. If ``takes_codes``, the function was given codes as unsigned integers.
    """

    case: Case
    judgement: Judgement
    findings: tuple[Finding, ...]
    is_whole: bool
    takes_codes: bool = False

    def __bool__(self) -> bool:
        return self.verdict not in WRONG

    @property
    def verdict(self) -> str:
        """One of the verdicts of docs/verdicts.md, such as ``conforms`` or ``violates``."""
        return self.judgement.verdict

    @property
    def inputs(self) -> int:
        """The number of inputs that were asked."""
        return self.judgement.inputs

    @property
    def open_inputs(self) -> int:
        """The number of inputs to which any answer is allowed."""
        return self.judgement.open_inputs

    @property
    def wrong(self) -> int:
        """The number of inputs whose answer breaks a rule."""
        return self.judgement.wrong

    @property
    def examples(self) -> tuple[WrongAnswer, ...]:
        """The simplest wrong input by each broken rule."""
        source, target = format_named(self.case.source), format_named(self.case.target)
        return tuple(
            WrongAnswer(
                self.case,
                each.rule,
                each.level,
                each.clause,
                datum_text(source, each.smallest),
                datum_text(target, each.answer),
                each.allowed,
            )
            for each in self.judgement.divergences
        )

    @property
    def smallest(self) -> WrongAnswer | None:
        """The first of the ``examples``; None if no answer is wrong."""
        return next(iter(self.examples), None)

    def __repr__(self) -> str:
        """Return one line that pytest shows whole: the counts, and the simplest wrong input."""
        line = f"<Result: {self._counts()}" + (f"; {self.smallest}" if self.smallest else "")
        return f"{line[: LONGEST_REPR - 2]}…>" if len(line) >= LONGEST_REPR else f"{line}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print all lines, not ``repr``, in IPython and in a notebook."""
        printer.text(str(self))

    def lines(self) -> Iterator[str]:
        """Yield the verdict, then the simplest wrong input by each rule, then the causes.

        A cause has an example unless a rule shows the same one.
        """
        modes = "".join(f", {name} {value}" for name, value in self.case.modes)
        opened = f"; {self.open_inputs:,} are open" if self.open_inputs else ""
        yield (
            f"{self._counts()}{opened} ({self.case.source} to {self.case.target} by"
            f" {self.case.document}:{self.case.version}{modes})"
        )
        if self.takes_codes:
            storage = format_named(self.case.source).storage
            yield f"  called with codes as {storage}; given ml_dtypes' numbers, it fails"
        for each in self.examples:
            yield f"  {each}"
            yield f"    {each.level} by {each.rule}: {each.clause}"
        for fault in self.judgement.faults:
            yield f"  {words(fault)}"
            yield f"    {fault.level} by {fault.rule}: {fault.clause}"
        # Of very many runs of wrong inputs only some are explained.
        is_part = sum(each.inputs for each in self.findings) < self.wrong
        for finding in self.findings:
            least = "at least " if is_part else ""
            yield f"  {finding.name}: {finding.says}, {least}{counted(finding.inputs, 'input')}"
            example = example_words(finding)
            if example and example not in map(str, self.examples):
                yield f"    {example}"

    def _counts(self) -> str:
        asked = f"all {self.inputs:,}" if self.is_whole else f"{self.inputs:,}"
        return f"{self.judgement.backend} {self.verdict}: {self.wrong:,} of {asked} inputs wrong"

    def to_arrow(self) -> pa.Table:
        """Return a table of the wrong answers: a row for each run of neighboring inputs.

        Of tensors with names, it has a row for each level at which a rule is broken: the simplest
        wrong element in words.
        """
        import pyarrow as pa

        source, target = format_named(self.case.source), format_named(self.case.target)
        rows = [
            {
                "rule": each.rule,
                "level": each.level,
                **{
                    name: datum_text(target if "answer" in name else source, datum_of(datum))
                    for name, datum in zip(OF_RUNS, run, strict=True)
                },
            }
            for each in self.judgement.divergences
            for run in zip(*(getattr(each.runs.listed, name) for name in OF_RUNS), strict=True)
        ]
        rows += [
            {
                "rule": each.rule,
                "level": each.level,
                **dict(zip(OF_RUNS, (each.given, each.given, each.got, each.got), strict=True)),
            }
            for each in self.judgement.faults
            if isinstance(each, WrongTensor)
        ]
        columns = ("rule", "level", *OF_RUNS)
        return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in columns]))


def wrong_results(frames: Iterable[Mapping[str, object]]) -> list[Result]:
    """Return the results in the local variables of frames that have wrong answers, each once.

    pytest keeps there what an assertion compares, also if it has no name.
    """
    found = (each for variables in frames for each in variables.values())
    results = {id(each): each for each in found if isinstance(each, Result) and not each}
    return [*results.values()]
