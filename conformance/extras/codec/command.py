"""``castigate codec``: judges a function of one's own that encodes or decodes small floats."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from conformance.commands.options import JobsOption
from conformance.extras.codec.answers import CodecAnswers, ask_all
from conformance.extras.codec.asked_texts import RANDOM_TEXTS
from conformance.extras.codec.judging import JudgedCodec, judge_codec
from conformance.extras.codec.kept_test import check_kept, check_name, write_kept_test
from conformance.extras.codec.process import Advance
from conformance.extras.codec.target import CodecTarget, codec_case, target_named
from conformance.sweep.input_progress import input_progress
from reports.counterexample.drawing import aligned_rows, datum_columns
from reports.findings.finding import Finding
from reports.findings.finding_text import counted, example_words
from specs.cases import Case
from specs.errors import CastigateError
from specs.formats import Format, dtype_spelled, format_named
from specs.ruling import ruling

LIKELY = 0.99
"""The probability with which a sample finds the faults that its report names."""
SECONDS = 10.0


class Direction(StrEnum):
    """Whether a codec encodes or decodes."""

    encoding = "encode"
    decoding = "decode"


def codec_command(
    form: Annotated[
        str,
        typer.Option(
            "--format", metavar="FORMAT", help="The small float, such as e4m3fn or float16."
        ),
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            metavar="TARGET",
            help="py:module:function, path.py:function, c:header.h:function (compiled),"
            " c:./library.so:function or 'exec:./program ARGUMENTS', which gets an input per line.",
        ),
    ] = None,
    direction: Annotated[
        Direction, typer.Option(help="Whether the function encodes numbers, or decodes codes.")
    ] = Direction.encoding,
    wide: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="DTYPE",
            help="What is encoded, or decoded to: float64, float32, float16, bfloat16 or text;"
            " encoded too: int8 to int64 and uint8 to uint64.",
        ),
    ] = "float32",
    rounding: Annotated[
        str | None,
        typer.Option(
            "--round",
            metavar="ROUNDING",
            help="nearest-even (default), nearest-away, toward-zero, floor, ceil or odd;"
            " RNE, RNA, RTZ, RTN, RTP and RTO are the same.",
        ),
    ] = None,
    overflow: Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Beyond the range: saturate (default), nan or inf."),
    ] = None,
    signature: Annotated[
        str | None,
        typer.Option(
            metavar="TYPE",
            help="The function's type in C, as 'uint8_t(float)' or 'void(const float *, uint8_t *,"
            " size_t)'; found by trying if left out.",
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option(metavar="test_NAME.py", help="Write a test for pytest that asks again."),
    ] = None,
    table: Annotated[
        bool, typer.Option("--table", help="Print the format's codes and values, and ask nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    seconds: Annotated[
        float, typer.Option("--timeout", metavar="SECONDS", help="Limit of a call that hangs.")
    ] = SECONDS,
    jobs: JobsOption = None,
) -> None:
    """Judge a function that encodes or decodes a small float, on all inputs if time permits.

    Exit code 0 if it conforms, 1 if it has a finding, 2 if it cannot be judged.
    """
    case = codec_case(
        dtype_spelled(form),
        dtype_spelled(wide),
        direction == Direction.encoding,
        rounding,
        overflow,
    )
    if table:
        if target is not None:
            raise CastigateError("--table asks nothing; leave the target out")
        typer.echo("\n".join(table_lines(dtype_spelled(form))))
        return
    if target is None:
        raise CastigateError("TARGET is missing; name a function, or ask for --table")
    if not (math.isfinite(seconds) and seconds > 0):
        raise CastigateError(f"--timeout {seconds:g}: give a number of seconds above 0")
    codec = target_named(target)
    if keep is not None:
        check_name(keep)
        check_kept(codec, ruling(case))
    with TemporaryDirectory(prefix="castigate-") as folder, input_progress() as begin:

        def progress(total: int, estimate: str) -> Advance:
            typer.echo(f"asking {total:,} inputs, {estimate}", err=True)
            return begin(total)

        answers = ask_all(
            codec,
            ruling(case),
            signature,
            seconds,
            jobs or os.cpu_count() or 1,
            Path(folder),
            progress,
        )
    judged = judge_codec(case, answers)
    if keep is not None:
        write_kept_test(keep, codec, case, answers)
    if as_json:
        typer.echo(json.dumps(record(codec, case, answers, judged), ensure_ascii=False))
    else:
        typer.echo("\n".join(report_lines(codec, case, answers, judged)))
        if keep is not None:
            typer.echo(f"{keep}: a test that asks this again")
    raise typer.Exit(1 if judged.findings else 0)


def report_lines(
    codec: CodecTarget, case: Case, answers: CodecAnswers, judged: JudgedCodec
) -> Iterator[str]:
    """Yield lines on what was asked, which inputs are open, and each finding with an example."""
    modes = "".join(f", {name} {value}" for name, value in case.modes)
    yield f"{codec.text}, called {answers.form}: {case.source} to {case.target}{modes}"
    time = f"in {answers.seconds:.1f} s ({answers.processor_seconds:.1f} s of processor time)"
    if answers.is_whole:
        yield f"all {counted(answers.asked, 'input')} asked {time}"
    else:
        of_all = f" of 2^{bits}" if (bits := format_named(case.source).bits) else ""
        yield f"{answers.asked:,}{of_all} inputs asked {time}: {answers.reason}"
        yield f"  {sample_words(case, answers)}"
    if answers.left_out:
        yield f"left out: {answers.left_out}"
    opened = judged.judgement.open_inputs
    if opened:
        yield f"left open: {counted(opened, 'input')} ({', '.join(judged.open_classes)})"
    if not judged.findings:
        yield "conforms" if answers.is_whole else "no finding"
        return
    yield f"{counted(len(judged.findings), 'finding')}:"
    for each in judged.findings:
        level = "" if each.simplest.level == "required" else ", recommended only"
        yield f"  {each.kind}: {each.says}{level}"
        inputs = f"{'' if each.is_exact else 'at least '}{counted(each.inputs, 'input')}"
        yield f"    {each.name}: {inputs}; {example_words(each)}"


def sample_words(case: Case, answers: CodecAnswers) -> str:
    """Return in words which inputs were sampled, and how rare a fault the sample finds."""
    match format_named(case.source):
        case Format(kind="text"):
            return f"spellings of numbers, decimals beside ties, and up to {RANDOM_TEXTS} at random"
        case Format(bits=64):
            return (
                f"those around each value of {case.target} and each tie, or some of them; some in"
                f" each binade; and {answers.drawn:,} at random"
            )
    one_of = max(1, int(answers.drawn / -math.log(1 - LIKELY)))
    return (
        f"all where the answer changes, and {answers.drawn:,} at random: a fault in one of"
        f" {one_of:,} inputs or more is found with a probability of {LIKELY:.0%}"
    )


def record(
    codec: CodecTarget, case: Case, answers: CodecAnswers, judged: JudgedCodec
) -> dict[str, Any]:
    """Return the object of ``--json``: target, case, verdict, counts, times, and the findings."""
    return {
        "target": codec.text,
        "called": answers.form,
        "case": case.id,
        "verdict": judged.judgement.verdict,
        "inputs": answers.asked,
        "is_whole": answers.is_whole,
        "open_inputs": judged.judgement.open_inputs,
        "seconds": round(answers.seconds, 3),
        "processor_seconds": round(answers.processor_seconds, 3),
        "findings": [_finding_record(each) for each in judged.findings],
    }


def _finding_record(finding: Finding) -> dict[str, Any]:
    simplest = finding.simplest
    return {
        "finding": finding.says,
        "name": finding.name,
        "level": simplest.level,
        "inputs": finding.inputs,
        "exact": finding.is_exact,
        "input": simplest.smallest,
        "answer": simplest.answer,
        "allowed": list(simplest.allowed),
    }


def table_lines(name: str) -> Iterator[str]:
    """Yield the codes of a format with their fields and values, a line each."""
    form = format_named(name)
    rows = [("", datum_columns(form, code)) for code in range(form.mask + 1)]
    yield from (line.strip() for line in aligned_rows(rows))
