"""Compiles a C codec and the driver that calls it into a program."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

from conformance.extras.codec.target import (
    CSTRING,
    FLOATING,
    AnySignature,
    CodecTarget,
    Signature,
    TextSignature,
    is_floating,
)
from specs.errors import CastigateError, closest
from specs.formats import Format, is_exact
from specs.plain_text import plain_line

DRIVER = Path(__file__).with_name("driver.c")
COMPILERS = {
    False: ("CC", "CFLAGS", ("cc", "gcc", "clang")),
    True: ("CXX", "CXXFLAGS", ("c++", "g++", "clang++")),
}
"""Environment variables for a compiler and its flags, and default compilers; for C, and for C++."""
OPTIONS = ("-O2", "-ffp-contract=off")
"""Fused operations would round once where the codec's author sees two roundings."""
STRICT = """#pragma GCC diagnostic push
#pragma GCC diagnostic error "-Wconversion"
#pragma GCC diagnostic error "-Wfloat-conversion"
#pragma GCC diagnostic error "-Wincompatible-pointer-types"
#pragma GCC diagnostic error "-Wimplicit-function-declaration"
#pragma GCC diagnostic ignored "-Wsign-conversion"
"""
"""Pragmas before a call: the compiler rejects a signature that would convert the argument."""
CONVERTED = (("double", "float32"), ("float", "bfloat16"))
"""C types that pass single numbers of a narrower format by value, each with that format."""
CONVERTED_ANSWERS = CONVERTED[:1]
"""Those that may return such numbers; not ``float``, as bfloat16 would lose bits of it."""
LENIENT = "#pragma GCC diagnostic pop\n"
LONGEST = 200
UNKNOWN = re.compile("implicit declaration|undeclared|not declared|not a member")
"""Matches the errors that compilers report for a function that does not exist."""
POSIX = "#ifndef _GNU_SOURCE\n#define _GNU_SOURCE\n#endif\n"
"""Declares ``getline`` and what the driver needs besides, whatever standard the flags ask for."""
LONGEST_WRITTEN = 1 << 16
"""The room that a codec gets for a text, in bytes."""
INCLUDED = ("stddef.h", "stdint.h", "stdbool.h", "string.h", "math.h", "dlfcn.h")


class WrongSignatureError(CastigateError):
    """The compiler rejects a call of the codec by the C type that is tried."""


def build(
    target: CodecTarget,
    signature: AnySignature,
    source: Format,
    answer: Format,
    folder: Path,
    texts: Path,
) -> Path:
    """Compile a program that calls the codec by a C type, and return its path in ``folder``.

    The file ``texts`` has the inputs of a codec that reads texts, a line each. Raise
    WrongSignatureError if the compiler rejects the type, and CastigateError if there is no
    compiler, a header lacks the function, or the codec does not compile.
    """
    compiler, flags = compiler_for(target)
    suffix = "cc" if target.is_cplusplus else "c"
    code, program = folder / f"codec.{suffix}", folder / "codec"
    code.write_text(program_text(target, signature, source, answer, texts), encoding="utf-8")
    command = [*compiler, *OPTIONS, *flags, "-o", str(program), str(code), "-ldl", "-lm"]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode:
        raise _refusal(target, signature, done.stderr, code)
    return program


def compiler_for(target: CodecTarget) -> tuple[list[str], list[str]]:
    """Return the compiler's command and the user's flags.

    Raise CastigateError if no compiler is found.
    """
    variable, flags, known = COMPILERS[target.is_cplusplus]
    named = shlex.split(os.environ.get(variable, ""))
    found = [path for name in ([*named[:1]] or known) if (path := shutil.which(name))]
    if not found:
        missing = f"{variable}={named[0]} is" if named else f"{', '.join(known)} are"
        raise CastigateError(
            f"target `{target.text}` needs a compiler, and {missing} not there; install one, or"
            f" name it in {variable}"
        )
    return [found[0], *named[1:]], shlex.split(os.environ.get(flags, ""))


def program_text(
    target: CodecTarget, signature: AnySignature, source: Format, answer: Format, texts: Path
) -> str:
    """Return the program's source text: the codec, functions that call it, and the driver."""
    includes = "".join(f"#include <{name}>\n" for name in INCLUDED)
    given, answered = (
        "uint32_t" if each.kind == "text" else f"{each.storage}_t" for each in (source, answer)
    )
    types = f"typedef {given} input_t;\ntypedef {answered} answer_t;\n"
    if source.kind == "text":
        types += f"#define TEXTS {_quoted(str(texts.resolve()))}\nstatic char **texts;\n"
    codec, ask = _codec(target, signature), _ask(target, signature, source, answer)
    return f"{POSIX}{includes}{codec}{types}{ask}\n{DRIVER.read_text()}"


def _codec(target: CodecTarget, signature: AnySignature) -> str:
    """Return C text that includes the codec's header, or loads its library and the function."""
    path = _quoted(str(Path(target.where).resolve()))
    if target.kind == "header":
        return (
            f"#include {path}\n#define CODEC {target.function}\n"
            "static int open_codec(void) { return 0; }\n"
        )
    return f"""#include <stdio.h>
static {signature.pointer.replace("NAME", "CODEC")};
static int open_codec(void) {{
    void *library = dlopen({path}, RTLD_NOW), *found = NULL;
    if (library != NULL)
        found = dlsym(library, "{target.function}");
    if (found == NULL)
        fprintf(stderr, "%s\\n", dlerror());
    memcpy(&CODEC, &found, sizeof found);
    return found == NULL;
}}
"""


def _ask(
    target: CodecTarget, signature: AnySignature, source: Format, target_format: Format
) -> str:
    """Return the C function that calls the codec for an array of inputs, or writes one's text."""
    given, answer = signature.given, signature.answer
    call = signature.call if isinstance(signature, TextSignature) else "CODEC(given)"
    if answer == CSTRING:
        return f"""
#define ANSWERS_TEXTS
{_not_of_numbers(target, signature)}static const char *ask_text(input_t pattern) {{
    static char buffer[{LONGEST_WRITTEN}];
    buffer[0] = 0;
    {_argument(given, source)}
{STRICT}    const char *text = {call};
{LENIENT}    return text;
}}
"""
    if isinstance(signature, Signature) and signature.count:
        return f"""
static void ask(const input_t *inputs, answer_t *answers, size_t count) {{
    memset(answers, 0xa5, count * sizeof *answers);
    const {given} *in = (const {given} *)(const void *)inputs;
    {answer} *out = ({answer} *)(void *)answers;
    {signature.count} size = ({signature.count})count;
{STRICT}    CODEC(in, out, size);
{LENIENT}}}
"""
    is_number = int(is_floating(answer))
    narrow = ""
    if is_number and not is_exact(source, target_format):
        # A wider answer would be rounded here, where the codec has to.
        narrow = f"typedef char is_no_wider[sizeof raw <= sizeof({answer}) ? 1 : -1];\n    "
    kind = "number" if is_number else "pattern"
    return f"""
{_not_of_numbers(target, signature)}static inline answer_t ask_one(input_t pattern) {{
    {_argument(given, source)}
{STRICT}    __typeof__({call}) raw = {call};
{LENIENT}    {narrow}typedef char is_{kind}[(((__typeof__(raw))0.5 != 0) == {is_number}) ? 1 : -1];
    {answer} found = ({answer})raw;
    {_result(answer, target_format.bits == 64)}
}}

static void ask(const input_t *inputs, answer_t *answers, size_t count) {{
    for (size_t i = 0; i < count; i++)
        answers[i] = ask_one(inputs[i]);
}}
"""


def _not_of_numbers(target: CodecTarget, signature: AnySignature) -> str:
    """Return a C check that fails to compile if the function takes numbers instead of patterns.

    Without it, C would convert the patterns to numbers. It is empty for floating types, for
    libraries, which have no types, and for C++. If the function is a macro, the preprocessor skips
    it.
    """
    is_given_number = is_floating(signature.given) or signature.given == CSTRING
    if target.kind == "library" or target.is_cplusplus or is_given_number:
        return ""
    if isinstance(signature, TextSignature) and signature.call != "CODEC(given)":
        return ""  # The compiler converts no pattern to a number without an error.
    checks = "".join(
        f"typedef char takes_patterns_{number}[__builtin_types_compatible_p(__typeof__(CODEC),"
        f" __typeof__(CODEC(({signature.given})0))({number})) ? -1 : 1];\n"
        for number in ("float", "double")
    )
    return f"#ifndef {target.function}\n{checks}#endif\n"


def _argument(given: str, source: Format) -> str:
    if given == CSTRING:
        return "const char *given = texts[pattern]; char *end = NULL; (void)end;"
    if given == "double" and source.name == "float64":
        return "double given; memcpy(&given, &pattern, sizeof given);"
    if given == "float" and source.name == "bfloat16":
        return "uint32_t wide = (uint32_t)pattern << 16; float given; memcpy(&given, &wide, 4);"
    if given == "double":
        return "float single; memcpy(&single, &pattern, sizeof single); double given = single;"
    if is_floating(given):
        return f"{given} given; memcpy(&given, &pattern, sizeof given);"
    return f"{given} given = ({given})pattern;"


def _result(answer: str, is_wide: bool) -> str:
    single = "float single = (float)found;" if answer == "double" and not is_wide else ""
    name = "single" if single else "found"
    if is_floating(answer):
        return f"{single} answer_t code; memcpy(&code, &{name}, sizeof code); return code;"
    return "return (answer_t)found;"


def check_widths(signature: Signature, source: Format, answer: Format) -> None:
    """Raise CastigateError if a floating type of a signature has another width than its format.

    A function of single numbers may take bfloat16 as ``float``, and take and return float32 as
    ``double``.
    """
    for name, form, converted in (
        (signature.given, source, CONVERTED),
        (signature.answer, answer, CONVERTED_ANSWERS),
    ):
        if is_floating(name) and form.is_integral:
            raise CastigateError(
                f"--signature `{signature.text}`: `{name}` is no integer, and a codec of"
                f" {form.name} takes integers, as {form.name}_t"
            )
        bits = FLOATING.get(name, form.bits)
        is_converted = not signature.count and (name, form.name) in converted
        if bits != form.bits and not is_converted:
            raise CastigateError(
                f"--signature `{signature.text}`: `{name}` has {bits} bits, and {form.name} has"
                f" {form.bits}; name the type of the pattern, {form.storage}_t"
            )


def symbol_hint(target: CodecTarget) -> str:
    """Return text that asks if a similar function was meant; empty if there is none or no `nm`."""
    if (nm := shutil.which("nm")) is None:
        return ""
    command = [nm, "-D", "--defined-only", target.where]
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    names = [words[-1] for line in done.stdout.splitlines() if (words := line.split())]
    near = closest(target.function, names)
    return f"; did you mean `{near}`?" if near else ""


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _refusal(
    target: CodecTarget, signature: AnySignature, stderr: str, code: Path
) -> CastigateError:
    """Return the error for a program that does not compile.

    It is a WrongSignatureError if the call by this type is at fault.
    """
    lines = [line for line in stderr.splitlines() if "error" in line] or stderr.splitlines()
    if any(target.function in line and UNKNOWN.search(line) for line in lines):
        return CastigateError(
            f"target `{target.text}`: {target.where} has no function `{target.function}`"
        )
    said = plain_line(lines[0] if lines else "no reason given", LONGEST)
    if said.startswith(str(code)):
        # Omit the position in the program, which is deleted before the user reads this.
        reason = said.partition("error: ")[2] or said
        return WrongSignatureError(
            f"--signature `{signature.text}`: the compiler refuses it for {target.function}:"
            f" {reason}"
        )
    return CastigateError(f"target `{target.text}` does not compile: {said}")
