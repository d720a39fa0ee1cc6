"""What the functions of ``castigate.py`` return: values that print as lines and give tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from reports.counterexample.drawing import datum_text
from reports.findings.finding import Finding
from reports.findings.finding_text import counted, datum_words
from reports.grading.divergences import datum_of
from reports.judgement import WRONG, Judgement
from reports.problem_words import words
from reports.problems import WrongTensor, WrongValues
from specs.cases import Case
from specs.formats import format_named

if TYPE_CHECKING:
    import pyarrow as pa


OF_RUNS = ("first", "last", "answer", "last_answer")
"""The columns of runs of wrong inputs: the ends of each run, and the answers there."""


class Printable:
    """A value that prints as its ``lines``, also in a notebook."""

    def lines(self) -> Iterator[str]:
        """Yield what a person reads."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


@dataclass(frozen=True, repr=False)
class Result(Printable):
    """How a document or yardstick judges answers; it is false if some are wrong.

    ``findings`` are the causes of wrong answers. If ``is_whole``, every input of the source was
    asked.
    """

    case: Case
    judgement: Judgement
    findings: tuple[Finding, ...]
    is_whole: bool

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

    def lines(self) -> Iterator[str]:
        """Yield the verdict, then the simplest wrong input by each rule, then the causes."""
        modes = "".join(f", {name} {value}" for name, value in self.case.modes)
        asked = f"all {self.inputs:,}" if self.is_whole else f"{self.inputs:,}"
        opened = f"; {self.open_inputs:,} are open" if self.open_inputs else ""
        yield (
            f"{self.judgement.backend} {self.verdict}: {self.wrong:,} of {asked} inputs wrong"
            f"{opened} ({self.case.source} to {self.case.target} by"
            f" {self.case.document}:{self.case.version}{modes})"
        )
        for each in self.judgement.divergences:
            yield f"  {_example(self.case, each)}"
            yield f"    {each.level} by {each.rule}: {each.clause}"
        for fault in self.judgement.faults:
            yield f"  {words(fault)}"
            yield f"    {fault.level} by {fault.rule}: {fault.clause}"
        for finding in self.findings:
            yield f"  {finding.name}: {finding.says}, {counted(finding.inputs, 'input')}"

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


def _example(case: Case, problem: WrongValues) -> str:
    given = datum_words(case.source, datum_text(format_named(case.source), problem.smallest))
    answer = datum_words(case.target, datum_text(format_named(case.target), problem.answer))
    allowed = " or ".join(datum_words(case.target, each) for each in problem.allowed)
    return f"{given} gives {answer}, not {allowed}"
