"""LLVM, through llvmlite: what it compiles casts to, and what it computes for casts of constants.

Compiled casts run on this processor's instructions and on libgcc, constants in LLVM's own APFloat.
A float is rounded to an integer by LLVM's ``roundeven``, ``round``, ``floor`` and ``ceil``, then by
a cast that saturates.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import importlib
import re
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np

from lab.truths.questions import Answers, Patterns, Question
from lab.truths.values import is_nan, values_of
from specs.formats import Format
from specs.model.vocabulary import Rounding

FLOATS = {
    "float64": ("double", "f64"),
    "float32": ("float", "f32"),
    "float16": ("half", "f16"),
    "bfloat16": ("bfloat", "bf16"),
}
"""The names of LLVM's types, and how an intrinsic's name spells them."""
RUNTIME = {
    "float16": ("__truncsfhf2", "__truncdfhf2"),
    "bfloat16": ("__truncsfbf2", "__truncdfbf2"),
}
"""Functions that compiled casts may call; not every libgcc has them."""
WHOLE: dict[Rounding, str] = {
    "nearest-even": "roundeven", "nearest-away": "round", "toward-zero": "trunc",
    "floor": "floor", "ceil": "ceil",
}  # fmt: skip
LOOP = """
{declarations}
define void @cast(ptr %from, ptr %to, i64 %count) {{
entry:
  br label %loop
loop:
  %at = phi i64 [0, %entry], [%next, %loop]
  %there = getelementptr {stored}, ptr %from, i64 %at
  %pattern = load {stored}, ptr %there
{body}
  %here = getelementptr {kept}, ptr %to, i64 %at
  store {kept} %answer, ptr %here
  %next = add i64 %at, 1
  %more = icmp ult i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}}
"""
CONSTANTS = """
{declarations}
define {kept} @cast() {{
{body}
  ret {kept} %answer
}}
"""
FOLDED_AT_ONCE = 1024


class CompiledByLlvm:
    """Run the casts that LLVM compiles; of bfloat16 only where libgcc has what they call."""

    name = "LLVM compiled"
    package = "llvmlite"
    most_inputs: int | None = None

    def version(self) -> str:
        return _version()

    def can_answer(self, question: Question) -> bool:
        # A float is rounded to a whole number in its own type, too.
        ends = question.source, question.target
        needed = [name for fmt in ends for name in RUNTIME.get(fmt.name, ())]
        return _can_answer(question) and all(map(_binding().address_of_symbol, needed))

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        source, target = question.source, question.target
        codes = np.empty(patterns.size, target.storage)
        inputs = np.ascontiguousarray(patterns.astype(source.storage, copy=False))
        _compiled(source, target, question.rounding)(
            inputs.ctypes.data, codes.ctypes.data, inputs.size
        )
        return _known(question, patterns, codes & target.mask)


class FoldedByLlvm:
    """Let LLVM compute casts of constants; it reads them as text, so only some inputs are asked."""

    name = "LLVM constants"
    package = "llvmlite"
    most_inputs: int | None = 20_000

    def version(self) -> str:
        return _version()

    def can_answer(self, question: Question) -> bool:
        # It leaves calls of `roundeven` and its like on constants of type bfloat as they are.
        kept = question.source.name == "bfloat16" and question.target.is_integral
        return _can_answer(question) and not kept

    def answer(self, question: Question, patterns: Patterns) -> Answers:
        starts = range(0, patterns.size, FOLDED_AT_ONCE)
        parts = [_folded(question, patterns[at : at + FOLDED_AT_ONCE]) for at in starts]
        codes = np.array([code for part in parts for code in part], question.target.storage)
        return _known(question, patterns, codes)


def _version() -> str:
    found = importlib.import_module("llvmlite.binding").llvm_version_info
    return f"{'.'.join(map(str, found))} (llvmlite {version('llvmlite')})"


def _can_answer(question: Question) -> bool:
    source, target = question.source, question.target
    if source == target or not (source.name in FLOATS or source.is_integral):
        return False
    if target.name in FLOATS:
        return question.rounding == "nearest-even" and question.overflow != "wrap"
    if source.is_integral or target.kind != "integer":
        return False
    return question.rounding in WHOLE and question.overflow == "saturate"


def _known(question: Question, patterns: Patterns, codes: Patterns) -> Answers:
    source, target = question.source, question.target
    known = np.ones(codes.shape, bool)
    if question.overflow == "saturate" and target.kind == "float":
        known = np.isfinite(values_of(target, codes))
        if source.kind == "float":
            known |= is_nan(source, patterns)
    return Answers(codes, known)


def _cast(source: Format, target: Format, rounding: Rounding, lanes: int) -> tuple[str, str]:
    """Return LLVM declarations, and instructions that cast ``%pattern`` to ``%answer``.

    Both are vectors of ``lanes`` elements, or scalars if that is 0.
    """

    def many(kind: str) -> str:
        return f"<{lanes} x {kind}>" if lanes else kind

    def named(intrinsic: str, *kinds: str) -> str:
        return f"@llvm.{intrinsic}" + "".join(f".{f'v{lanes}' if lanes else ''}{k}" for k in kinds)

    stored, kept = many(f"i{source.bits}"), many(f"i{target.bits}")
    if source.is_integral:
        kind = many(FLOATS[target.name][0])
        name = "sitofp" if source.is_signed else "uitofp"
        return "", (
            f"  %cast = {name} {stored} %pattern to {kind}\n"
            f"  %answer = bitcast {kind} %cast to {kept}"
        )
    kind, short = FLOATS[source.name]
    value = f"  %value = bitcast {stored} %pattern to {many(kind)}\n"
    if target.is_integral:
        whole = named(WHOLE[rounding], short)
        cast = named(f"fpto{'si' if target.is_signed else 'ui'}.sat", f"i{target.bits}", short)
        return (
            f"declare {many(kind)} {whole}({many(kind)})\ndeclare {kept} {cast}({many(kind)})",
            f"{value}  %whole = call {many(kind)} {whole}({many(kind)} %value)\n"
            f"  %answer = call {kept} {cast}({many(kind)} %whole)",
        )
    other = FLOATS[target.name][0]
    name = "fpext" if target.bits > source.bits else "fptrunc"
    if source.bits == target.bits:
        # LLVM has no cast between two types of one width; float holds both.
        value += f"  %wide = fpext {many(kind)} %value to {many('float')}\n"
        cast = f"  %cast = fptrunc {many('float')} %wide to {many(other)}\n"
    else:
        cast = f"  %cast = {name} {many(kind)} %value to {many(other)}\n"
    return "", f"{value}{cast}  %answer = bitcast {many(other)} %cast to {kept}"


@cache
def _binding() -> Any:
    binding: Any = importlib.import_module("llvmlite.binding")
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    for library in ("gcc_s", "m"):
        path = ctypes.util.find_library(library)
        if path is not None:
            binding.load_library_permanently(path)
    return binding


_ENGINES: list[Any] = []
"""The engines that own compiled code, which must outlive its addresses."""


@cache
def _compiled(source: Format, target: Format, rounding: Rounding) -> Any:
    binding = _binding()
    declarations, cast = _cast(source, target, rounding, 0)
    # Narrow integers are stored in a byte each.
    wide = {bits: 8 if bits < 8 else bits for bits in (source.bits, target.bits)}
    body = cast
    if source.bits < 8:
        body = f"  %narrow = trunc i8 %pattern to i{source.bits}\n" + cast.replace(
            "%pattern", "%narrow"
        )
    if target.bits < 8:
        body = body.replace("%answer", "%few") + f"\n  %answer = zext i{target.bits} %few to i8"
    stored, kept = f"i{wide[source.bits]}", f"i{wide[target.bits]}"
    text = LOOP.format(declarations=declarations, body=body, stored=stored, kept=kept)
    module = binding.parse_assembly(text)
    module.verify()
    machine = binding.Target.from_default_triple().create_target_machine(
        opt=2,
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
    )
    engine = binding.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    _ENGINES.append(engine)
    pointer = ctypes.c_size_t
    return ctypes.CFUNCTYPE(None, pointer, pointer, ctypes.c_uint64)(
        engine.get_function_address("cast")
    )


def _folded(question: Question, patterns: Patterns) -> list[int]:
    """Let LLVM simplify the cast of a vector of constants, and read the constants it leaves."""
    source, target = question.source, question.target
    lanes = patterns.size
    constants = ", ".join(f"i{source.bits} {code}" for code in patterns.tolist())
    declarations, cast = _cast(source, target, question.rounding, lanes)
    stored, kept = f"<{lanes} x i{source.bits}>", f"<{lanes} x i{target.bits}>"
    body = f"  %pattern = bitcast {stored} <{constants}> to {stored}\n{cast}"
    binding = _binding()
    module = binding.parse_assembly(
        CONSTANTS.format(declarations=declarations, body=body, kept=kept)
    )
    machine = binding.Target.from_default_triple().create_target_machine()
    builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options())
    passes = binding.create_new_module_pass_manager()
    passes.add_instruction_combine_pass()
    passes.run(module, builder)
    found = _constants(str(module.get_function("cast")), lanes)
    return [code & target.mask for code in found]


def _constants(text: str, lanes: int) -> list[int]:
    [returned] = re.findall(r"^  ret <\d+ x i\d+> ([^%].*)$", text, re.MULTILINE)
    if returned == "zeroinitializer":
        return [0] * lanes
    splat = re.fullmatch(r"splat \(i\d+ (\S+)\)", returned)
    found = [splat[1]] * lanes if splat else re.findall(r"i\d+ ([^,>]+)", returned)
    words = {"true": 1, "false": 0}
    return [words[word] if word in words else int(word) for word in found]
