"""Asks a codec in Python, or a program: the counterpart of ``driver.c``, with the same files.

python -m conformance.extras.codec.python_worker MODULE FUNCTION FORM SOURCE TARGET TEXTS HOW …

With the form ``program``, MODULE is a command line, and FUNCTION the limit of a batch in seconds.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from time import monotonic_ns, process_time_ns
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.extras.codec.program_codec import CodecEndedError, program_asker
from specs.formats import Format, format_named

BLOCK = 1 << 16
NOT_OPENED, MANY_RUNS, RAISED = 3, 4, 6
FORM_WORDS = {
    "numpy": "on numpy arrays",
    "torch": "on torch tensors",
    "number": "on Python numbers",
    "numpy-bits": "on numpy arrays of patterns",
    "bits": "on patterns as Python integers",
    "text": "on Python strings",
    "program": "line by line",
}
"""The forms in which a function may take its inputs, in words."""
NUMERIC_FORMS = ("numpy", "torch", "number", "numpy-bits", "bits")
"""The forms of functions of numbers, in the order in which they are tried."""
WRITING_FORMS = ("number", "numpy", "bits")
"""Those of functions that write texts."""
PROGRAM = "program"
NUMPY_FLOATS = ("float64", "float32", "float16")
NOT_USED = "the module does not use torch"
AnswersOf = Callable[[NDArray[Any]], NDArray[Any]]


class WrongTypeError(Exception):
    """A codec returned an answer of a wrong type, shape or range."""


def asks_one_by_one(form: str) -> bool:
    """Return whether functions of this form take one number at a time."""
    return form in ("number", "bits", "text")


def main() -> None:
    """Load the codec, ask the inputs of the command line, and write its answers or their runs.

    HOW is `sweep` or `list`. After it come the words of ``driver.c``: PROGRESS OUT, and FIRST COUNT
    MOST or IN STEP. PROGRESS gets the place of the inputs being asked, and at the end the
    nanoseconds of processor time, or of a program all nanoseconds. What the codec prints goes to
    stderr. Exits with ``NOT_OPENED`` if the codec cannot be loaded, ``MANY_RUNS`` after more than
    MOST runs, and ``RAISED`` if it raises an error or returns something wrong.
    """
    module, function, form, source, target, texts, how, progress_file, out, *words = sys.argv[1:]
    place = np.memmap(progress_file, np.uint64, "r+")
    sys.stdout = sys.stderr
    given = Path(texts).read_text(encoding="utf-8").split("\n") if texts else []
    ends = format_named(source), format_named(target)
    clock = process_time_ns
    if form == PROGRAM:
        ask, clock = program_asker(module, float(function), *ends, given), monotonic_ns
    else:
        try:
            codec = _loaded(module, function)
        except BaseException as error:
            _say(f"{type(error).__name__}: {error}")
            raise SystemExit(NOT_OPENED) from None
        ask = asker(form, codec, *ends, given)
    begin = clock()
    storage = "uint64" if given else ends[0].storage
    if how == "list":
        inputs = np.fromfile(words[0], np.uint64).astype(storage)
        step = int(words[1])
        blocks = [inputs[at : at + step] for at in range(0, inputs.size, step)]
        _write(np.concatenate([*_asked(ask, blocks, place, 0)]), out)
    else:
        first, count, most = map(int, words)
        _sweep(ask, place, storage, first, count, most, out)
    place[1] = 1 + clock() - begin  # never 0: see ``driver.c``


def _write(answers: NDArray[Any], out: str) -> None:
    if answers.dtype == object:
        lines = (text.replace("\n", " ") + "\n" for text in answers.tolist())
        Path(out).write_bytes("".join(lines).encode(errors="replace"))
    else:
        answers.astype(np.uint64).tofile(out)


def _asked(
    ask: AnswersOf, blocks: Any, place: NDArray[np.uint64], first: int
) -> Iterator[NDArray[Any]]:
    """Yield the answers to each block of inputs, and store its position in ``place[0]`` before.

    ``first`` is the position of the first block. If the codec raises an error, print it with the
    input at fault, or with -1 for a wrong answer, and exit with ``RAISED``.
    """
    at = first
    for block in blocks:
        place[0] = at
        try:
            answers = ask(block)
        except WrongTypeError as error:
            _say(f"-1 {error}")
            raise SystemExit(RAISED) from None
        except CodecEndedError as error:
            _say(f"{error.place} {error}")
            raise SystemExit(RAISED) from None
        except BaseException as error:
            _say(f"{_guilty(ask, block)} raised {type(error).__name__}: {error}")
            raise SystemExit(RAISED) from None
        yield answers
        at += block.size


def _guilty(ask: AnswersOf, block: NDArray[Any]) -> int:
    """Return the input of a failed block to which bisection narrows the codec's error.

    If inputs fail only together, this one alone does not fail.
    """
    while block.size > 1:
        half = block[: block.size // 2]
        try:
            ask(half)
            block = block[block.size // 2 :]
        except BaseException:
            block = half
    return int(block[0])


def _sweep(
    ask: AnswersOf,
    place: NDArray[np.uint64],
    storage: str,
    first: int,
    count: int,
    most: int,
    out: str,
) -> None:
    def blocks() -> Iterator[NDArray[Any]]:
        for at in range(first, first + count, BLOCK):
            stop = min(at + BLOCK, first + count)
            yield np.arange(at, stop, dtype=np.uint64).astype(storage)

    runs: list[NDArray[np.uint64]] = []
    total, last, at = 0, -1, first
    for answers in _asked(ask, blocks(), place, first):
        changes = np.flatnonzero(answers[1:] != answers[:-1]) + 1
        if last < 0 or int(answers[0]) != last:
            changes = np.append(0, changes)
        total += changes.size
        if total > most:
            raise SystemExit(MANY_RUNS)
        runs.append(np.stack([at + changes, answers[changes]], 1).astype(np.uint64))
        last, at = int(answers[-1]), at + answers.size
    np.concatenate(runs).tofile(out)


def _loaded(module: str, function: str) -> Callable[[Any], Any]:
    """Import the module or file, and return its function.

    Raise AttributeError or TypeError if there is no such function; errors of the import pass
    through.
    """
    found: Any = _module_from(Path(module)) if module.endswith(".py") else _imported(module)
    for name in function.split("."):
        if not hasattr(found, name):
            raise AttributeError(f"there is no `{name}` in it")
        found = getattr(found, name)
    if not callable(found):
        raise TypeError(f"`{function}` is no function but a {type(found).__name__}")
    result: Callable[[Any], Any] = found
    return result


def _imported(module: str) -> ModuleType:
    sys.path.insert(0, "")
    return importlib.import_module(module)


def _module_from(path: Path) -> ModuleType:
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def asker(
    form: str,
    codec: Callable[[Any], Any],
    source: Format,
    target: Format,
    texts: Sequence[str] = (),
) -> AnswersOf:
    """Return a function from an array of patterns to the codec's answers, patterns or texts.

    ``form`` says in which form the codec takes its inputs; it is a key of ``FORM_WORDS``. If it
    reads texts, its inputs are indices of ``texts``. The function raises WrongTypeError for an
    answer of a wrong type, shape or range, what the codec raises, and in the form ``torch``
    TypeError if nothing has imported torch.
    """
    match form:
        case "text":
            return lambda bits: _one_by_one(
                codec, [texts[index] for index in bits.tolist()], bits, target
            )
        case "numpy":
            return lambda bits: _patterns(codec(_numbers(source, bits)), bits, target)
        case "numpy-bits":
            return lambda bits: _patterns(codec(bits.copy()), bits, target)
        case "torch":
            return lambda bits: _patterns(_from_torch(codec(_tensor(source, bits))), bits, target)
        case "number":
            return lambda bits: _one_by_one(codec, _python_numbers(source, bits), bits, target)
    return lambda bits: _one_by_one(codec, bits.tolist(), bits, target)


def _one_by_one(
    codec: Callable[[Any], Any], given: list[Any], bits: NDArray[Any], target: Format
) -> NDArray[Any]:
    if target.kind == "text":
        return _as_texts([_text(codec(each)) for each in given])
    return np.array([_pattern(codec(each), target) for each in given], target.storage)


def _as_texts(texts: list[str]) -> NDArray[Any]:
    found = np.empty(len(texts), object)
    found[:] = texts
    return found


def _text(answer: Any) -> str:
    if isinstance(answer, str | bytes):
        return answer if isinstance(answer, str) else answer.decode(errors="replace")
    raise WrongTypeError(f"returns a {type(answer).__name__} where a text is wanted")


def _numbers(source: Format, bits: NDArray[Any]) -> NDArray[Any]:
    """Return patterns as numpy numbers: bfloat16 as float32, formats unknown to numpy as codes."""
    if source.name in NUMPY_FLOATS or source.is_integral:
        return bits.view(source.name)
    if source.name == "bfloat16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return bits.copy()


def _python_numbers(source: Format, bits: NDArray[Any]) -> list[Any]:
    numbers: list[Any] = _numbers(source, bits).tolist()
    return numbers


def _tensor(source: Format, bits: NDArray[Any]) -> Any:
    torch = sys.modules.get("torch")
    if torch is None:
        raise TypeError(NOT_USED)
    if source.name in (*NUMPY_FLOATS, "bfloat16") or source.is_integral:
        return torch.from_numpy(bits.copy()).view(getattr(torch, source.name))
    return torch.from_numpy(bits.copy())


def _from_torch(answer: Any) -> NDArray[Any]:
    torch = sys.modules["torch"]
    if not isinstance(answer, torch.Tensor):
        raise WrongTypeError(f"returns a {type(answer).__name__} where a tensor is wanted")
    plain = answer.detach().cpu().contiguous()
    if plain.is_floating_point() and plain.dtype not in (torch.float32, torch.float64):
        return np.asarray(
            plain.view({1: torch.uint8, 2: torch.uint16}[plain.element_size()]).numpy()
        )
    return np.asarray(plain.numpy())


def _patterns(answer: Any, bits: NDArray[Any], target: Format) -> NDArray[Any]:
    """Return a codec's array of answers as patterns of the target, one for each of ``bits``.

    Raise WrongTypeError for another shape, a wrong type, or answers beyond the target's storage.
    """
    found = np.asarray(answer)
    if found.shape != bits.shape:
        raise WrongTypeError(f"returns the shape {found.shape} for {bits.shape}")
    if target.kind == "text":
        return _as_texts([_text(each) for each in found.ravel().tolist()])
    storage = np.dtype(target.storage)
    if target.name in NUMPY_FLOATS and found.dtype.kind == "f":
        return _exact_numbers(found, target).view(storage)
    if target.name == "bfloat16" and found.dtype == np.float32:
        words = found.view(np.uint32)
        if (words & 0xFFFF).any():
            raise WrongTypeError("returns numbers of float32 that bfloat16 lacks")
        return (words >> np.uint32(16)).astype(storage)
    if found.dtype.kind in "iu":
        if found.dtype.itemsize == storage.itemsize:
            return found.view(storage)
        if ((found < 0) | (found > np.iinfo(storage).max)).any():
            raise WrongTypeError(f"returns numbers that are no codes of {target.name}")
        return found.astype(storage)
    if found.dtype.itemsize == storage.itemsize and found.dtype.kind != "O":
        return found.view(storage)
    raise WrongTypeError(
        f"returns an array of {found.dtype} where codes of {target.name} ({storage}) are wanted"
    )


def _pattern(answer: Any, target: Format) -> int:
    """Return a codec's single answer as a pattern of the target.

    Raise WrongTypeError if it has a wrong type, or does not fit the target's storage.
    """
    if isinstance(answer, bool) or not isinstance(answer, int | float | np.generic):
        raise WrongTypeError(f"returns a {type(answer).__name__} where {_wanted(target)} is wanted")
    if isinstance(answer, np.generic):
        answer = (
            answer.item()
            if answer.dtype.kind in "iuf"
            else int.from_bytes(answer.tobytes(), "little")
        )
    if target.name in NUMPY_FLOATS and isinstance(answer, float):
        return int(_exact_numbers(np.array([answer]), target).view(target.storage)[0])
    if isinstance(answer, float):
        raise WrongTypeError(f"returns a float where {_wanted(target)} is wanted")
    if not 0 <= answer <= np.iinfo(target.storage).max:
        raise WrongTypeError(f"returns {answer}, which is no code of {target.name}")
    return int(answer)


def _exact_numbers(numbers: NDArray[Any], target: Format) -> NDArray[Any]:
    """Return numbers in a float format; raise WrongTypeError if it lacks one of them.

    To round it here would hide that the codec did not round it.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = numbers.astype(target.name)
    if not np.array_equal(found, numbers, equal_nan=True):
        raise WrongTypeError(f"returns numbers of {numbers.dtype} that {target.name} lacks")
    return found


def _wanted(target: Format) -> str:
    return "a float" if target.name in NUMPY_FLOATS else f"a code of {target.name}"


def _say(text: str) -> None:
    sys.stderr.write(f"\n{' '.join(text.split())}\n")


if __name__ == "__main__":
    main()
