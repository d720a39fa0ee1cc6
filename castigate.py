"""Check casts and bitcasts from Python; and the entry points of the command and of pytest.

    >>> import castigate as cg
    >>> cg.cast([0.1, 465, float("nan")], "fp32", "e4m3fn")
    array([0.101562, 448, nan], dtype='float8_e4m3fn')

The functions below are Castigate's programming interface; the packages ``specs``, ``oracles``,
``reports`` and ``conformance`` are internal. Whatever is wrong with an argument raises
``CastigateError``, whose message is one line; wrong numbers raise nothing, but are in the result.
Only where another package hides one of these four, every function raises ImportError, and says so.

Every pytest in an environment that has castigate loads this module, in projects too that have
packages of their own named like castigate's. So it imports none of castigate's packages until one
is needed, and checks first that Python finds castigate's and not the project's.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # Most programs that load this module need no types, and typing costs time.
    from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    import numpy as np
    import pytest
    from numpy.typing import ArrayLike, NDArray

    from conformance.api.arrays import TensorDtype
    from conformance.api.questions import DocumentRow, Explanation, FormatRow, Listing, Run
    from conformance.api.results import Result
    from conformance.extras.checkpoints.results import CheckedCheckpoint
    from conformance.extras.portable.agreement import PortableAgreement
    from oracles.protocol import Unsupported as Unsupported
    from specs.errors import CastigateError as CastigateError

    _Dtype = str | type | np.dtype[Any] | TensorDtype
    _Mode = Mapping[str, str | int]
    _CastFunction = Callable[[NDArray[Any]], ArrayLike]
    _TensorFunction = (
        Callable[[NDArray[Any], NDArray[Any], NDArray[Any]], ArrayLike]
        | Callable[[NDArray[Any]], Mapping[str, ArrayLike]]
    )

__all__ = [
    "CastigateError",
    "Unsupported",
    "bitcast",
    "cast",
    "check",
    "check_checkpoint",
    "documents",
    "explain",
    "formats",
    "judge",
    "portable",
    "run",
]

__tracebackhide__ = True
"""Has pytest leave out this module's frames: a failed test shows its own lines."""
PACKAGES = ("specs", "oracles", "reports", "conformance")
SUITE = "conformance"
RESULTS = "conformance.api.results"
HERE = os.path.dirname(os.path.abspath(__file__))


def cast(
    values: ArrayLike,
    source: _Dtype,
    target: _Dtype,
    *,
    document: str | None = None,
    mode: _Mode | None = None,
    bits: bool = False,
) -> NDArray[Any]:
    """Convert numbers exactly, as a document or a yardstick says.

    ``source`` and ``target`` are dtypes in any framework's spelling. ``values`` are an array, a
    tensor of torch, a list or one number; what is no value of ``source`` is rounded to the nearest.
    An unsigned array of the width of a float holds its patterns. ``document`` is a document such as
    ``onnx-cast`` or ``onnx-cast:25``, and ``mode`` chooses values of its parameters, as in
    ``{"saturate": 0}``. Without it a yardstick decides: numbers round to nearest, ties to even, and
    those beyond the range of a float of eight bits or less are clamped. Returns an array of numpy's
    or ml_dtypes' dtype, or with ``bits`` its patterns. Raises CastigateError where no single answer
    is right, such as for 300 to int8.
    """
    return _function("answers:cast")(values, source, target, document, mode, bits)  # type: ignore[no-any-return]


def bitcast(
    values: ArrayLike,
    source: _Dtype,
    target: _Dtype,
    *,
    document: str | None = None,
    bits: bool = False,
) -> NDArray[Any]:
    """Read the bits of numbers as another dtype.

    Dtypes of different widths need a document such as ``torch-view``, which says what shape the
    result has. Arguments and result are otherwise as in ``cast``.
    """
    return _function("questions:bitcast")(values, source, target, document, bits)  # type: ignore[no-any-return]


def explain(
    value: ArrayLike,
    source: _Dtype,
    target: _Dtype,
    *,
    document: str | None = None,
    backends: Sequence[str] = (),
) -> Explanation:
    """Say what documents allow for a value, and what frameworks answer.

    ``value`` is a number, or a text such as ``0x1.8p3``, ``-inf`` or the pattern ``0x7fc00000``.
    The answers of frameworks are recorded, so that none need be installed; ``backends`` are asked.
    """
    return _function("questions:explain")(value, source, target, document, _several(backends))  # type: ignore[no-any-return]


def check(
    function: _CastFunction | _TensorFunction,
    source: _Dtype,
    target: _Dtype,
    *,
    document: str | None = None,
    mode: _Mode | None = None,
    every: bool = False,
) -> Result:
    """Ask your own function telling inputs, and judge its answers; a Result is false if some fail.

    The function takes one row of inputs, an array of numpy's or ml_dtypes' dtype, and returns as
    many answers: numbers, or the patterns of floats as unsigned integers of their width. A decoder
    may take the codes of small floats as unsigned integers instead. With ``every`` all inputs are
    asked of sources of up to 32 bits, in a minute or so. Which rules decide is as in ``cast``. With
    a document of quantization the function takes ``x``, ``scale`` and ``zero``, and returns the
    codes; one that encodes blocks takes ``x`` and returns scales and codes.
    """
    return _function("answers:check")(function, source, target, document, mode, every)  # type: ignore[no-any-return]


def check_checkpoint(
    path: str | Path,
    target: _Dtype,
    *,
    source: _Dtype | None = None,
    document: str | None = None,
    backends: Sequence[str] = (),
) -> CheckedCheckpoint:
    """Say which numbers of a checkpoint change if they are cast, and where backends differ.

    The file is safetensors (one file, an index, or a folder), GGUF, npz, npy or ONNX. With
    ``source`` only its tensors of that dtype are checked.
    """
    checked = _extra("check_checkpoint")
    form = _function("arrays:format_of")
    given = None if source is None else form(source).name
    asked = _several(backends)
    return checked(path, form(target).name, source=given, document=document, backends=asked)  # type: ignore[no-any-return]


def judge(
    inputs: ArrayLike | Mapping[str, ArrayLike],
    answers: ArrayLike | Mapping[str, ArrayLike],
    source: _Dtype | None = None,
    target: _Dtype | None = None,
    *,
    document: str | None = None,
    mode: _Mode | None = None,
) -> Result:
    """Judge answers that are recorded in arrays; dtypes that are None are those of the arrays.

    Which rules decide is as in ``cast``. With a document of quantization ``inputs`` are a dict of
    the arrays ``x``, ``scale`` and ``zero``.
    """
    judged = _function("answers:judge")
    return judged(inputs, answers, source, target, document, mode, "answers")  # type: ignore[no-any-return]


def portable(
    *backends: str, pair: str, documents: Sequence[str] = (), every: bool = False
) -> PortableAgreement:
    """Say on which values backends agree, as ranges, and what each does elsewhere.

    ``pair`` is two dtypes such as ``bf16/e4m3fn``. Documents that are named must allow the answers
    too. With ``every`` all inputs of a 32-bit source are asked.
    """
    return _extra("portable")(backends, pair, _several(documents), every)  # type: ignore[no-any-return]


def run(
    *backends: str,
    documents: Sequence[str] = (),
    sources: Sequence[_Dtype] = (),
    targets: Sequence[_Dtype] = (),
    tier: str = "quick",
    out: str | None = None,
) -> Run:
    """Run cases against backends, as the command ``castigate run`` does.

    Without ``documents`` all are asked, without ``out`` the run is stored in a temporary folder.
    """
    selected = (_several(each) for each in (documents, sources, targets))
    return _function("questions:run")(backends, *selected, tier, out)  # type: ignore[no-any-return]


def documents() -> Listing[DocumentRow]:
    """List the documents that Castigate encodes."""
    return _function("questions:document_rows")()  # type: ignore[no-any-return]


def formats() -> Listing[FormatRow]:
    """List the dtypes that Castigate knows."""
    return _function("questions:format_rows")()  # type: ignore[no-any-return]


def _function(name: str) -> Callable[..., Any]:
    """Import a function of ``conformance.api``; raise ImportError if a package is hidden."""
    _require_own_packages()
    return _without_frames(_resolve(f"conformance.api.{name}"))


def _several(words: object) -> Sequence[Any]:
    """Return a list or tuple as it is, and anything else, such as a name, as a tuple of it."""
    return words if isinstance(words, list | tuple) else (words,)


def _extra(name: str) -> Callable[..., Any]:
    """Import the function of this name that an extra brings; raise ImportError as above."""
    _require_own_packages()
    return _without_frames(_resolve(_resolve("conformance.extras:FUNCTIONS")[name]))


def _without_frames(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose errors about arguments show none of the frames below it."""
    wrong_argument = _resolve("specs.errors:CastigateError")

    def called(*arguments: object, **named: object) -> Any:
        try:
            return function(*arguments, **named)
        except wrong_argument as error:
            raise error.with_traceback(None) from error.__cause__

    return called


def _require_own_packages() -> None:
    """Raise ImportError if another package hides one of castigate's."""
    if problem := hidden_package():
        raise ImportError(f"castigate: {problem}")


def _resolve(name: str) -> Any:
    from pkgutil import resolve_name

    return resolve_name(name)


def __getattr__(name: str) -> Any:
    """Return what costs an import: the class of errors, the version, and the plugin of pytest."""
    match name:
        case "CastigateError":
            _require_own_packages()
            return _resolve("specs.errors:CastigateError")
        case "Unsupported":
            return _resolve("oracles.protocol:Unsupported")
        case "__version__":
            return _resolve("specs:VERSION")
        case "pytest_plugin":
            return _pytest_plugin()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted((*__all__, "__version__"))


def main() -> None:
    """Run the command ``castigate``; exit with code 2 if another package hides one of its own."""
    _handle_signals()
    if problem := hidden_package():
        _complain(problem)
        sys.exit(2)
    _resolve("conformance.commands.main").main()


ENDINGS = {"SIGINT": ("interrupted", 130), "SIGTERM": ("terminated", 143)}
"""The line that is printed on each signal, and the exit code."""


def _handle_signals() -> None:
    """Have Ctrl-C and SIGTERM end the process at once, unless they are ignored.

    That is for the time in which no command runs: a command replaces these handlers by exceptions.
    But a module that is being imported might catch an exception, and when Python ends nothing
    handles one.
    """
    import atexit
    import signal

    taken = [
        number
        for number in map(signal.Signals.__getitem__, ENDINGS)
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    ]
    for number in taken:
        signal.signal(number, _end_at_once)
    # The first that is registered is called last. Then Python removes handlers of its own, but
    # goes on to ignore what is ignored: the result is complete, and is not lost any more.
    atexit.register(_ignore_signals, taken)


def _end_at_once(number: int, frame: object) -> None:
    import signal

    line, code = ENDINGS[signal.Signals(number).name]
    _complain(line)
    os._exit(code)


def _ignore_signals(numbers: Iterable[int]) -> None:
    import signal

    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _complain(message: str) -> None:
    """Print a message on stderr, or nothing if that is closed: the exit code says the same."""
    if sys.stderr is not None:
        try:
            sys.stderr.write(f"castigate: {message}\n")
            sys.stderr.flush()
        except OSError:
            return


def _pytest_plugin() -> object:
    """Return the plugin: the fixture ``castigate``, and the suite if an argument names it."""
    import pytest

    class CastigatePlugin:
        """Gives the fixture ``castigate`` to pytest wherever castigate is installed."""

        @pytest.fixture(name="castigate")
        def api(self) -> Any:
            """Return the module ``castigate``, to check casts in a test."""
            return sys.modules[__name__]

        @pytest.hookimpl(wrapper=True)
        def pytest_load_initial_conftests(
            self, early_config: pytest.Config, parser: pytest.Parser, args: list[str]
        ) -> Generator[None, object, object]:
            """Register the suite's plugin if an argument names the suite."""
            # After the conftest.py files: they may import packages, or add to sys.path.
            result = yield
            _register_suite(early_config, parser, args)
            return result

        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_makereport(
            self, item: pytest.Item, call: pytest.CallInfo[None]
        ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
            """Add to the report of a failed test the lines of results that are wrong."""
            report = yield
            if call.excinfo is not None and RESULTS in sys.modules and not hidden_package():
                frames = [entry.frame.f_locals for entry in call.excinfo.traceback]
                for each in _resolve(f"{RESULTS}:wrong_results")(frames):
                    report.sections.append(("castigate", str(each)))
            return report

    return CastigatePlugin()


def _register_suite(config: pytest.Config, parser: pytest.Parser, args: list[str]) -> None:
    """Register the suite's plugin if an argument names the suite, by its path or as a module.

    With ``--backend``, ``conformance`` names it too where nothing else has this name: ``args`` and
    ``config`` then get ``--pyargs``. Raises pytest.UsageError if the suite is meant, but another
    package hides one of castigate's, or if only ``--backend`` tells that it may be meant.
    """
    import pytest

    known = config.known_args_namespace
    names = [str(argument).partition("::")[0] for argument in known.file_or_dir]
    is_named_by_path = any(_is_path_of_suite(name) for name in names)
    is_named = is_named_by_path or (known.pyargs and any(map(_is_module_of_suite, names)))
    if not is_named:
        has_backend = any(word.startswith("--backend") for word in args)
        if not (has_backend and _lacks_backend(parser, args)):
            return
        if not any(name == SUITE and not os.path.lexists(name) for name in names):
            raise pytest.UsageError(
                "castigate: --backend judges a backend by the suite; name it: pytest --pyargs"
                " conformance --backend=…"
            )
        known.pyargs = True
        args.insert(0, "--pyargs")
    problem = hidden_package()
    if not problem:
        plugin = _resolve("conformance.pytest_plugin.plugin")
        config.pluginmanager.register(plugin, "castigate-suite")
    # `--pyargs conformance` may mean the tests of a project that has a package of this name.
    elif is_named_by_path or not _hiding(SUITE) or _lacks_backend(parser, args):
        raise pytest.UsageError(f"castigate: {problem}")


def hidden_package() -> str:
    """Say which of castigate's packages another one hides, and what to do; empty if none does."""
    for package in PACKAGES:
        for path in _hiding(package):
            what = path.parent if path.name == "__init__.py" else path
            return (
                f"`{what}` hides castigate's own package `{package}`; rename it, or keep "
                f"`{what.parent}` out of Python's search path (PYTHONPATH, `python -m`, "
                "conftest.py)"
            )
    return ""


def _hiding(package: str) -> list[Path]:
    """Return the paths of other packages that hide one of castigate's.

    They are imported already, or a new process would import them.
    """
    from pathlib import Path

    own = Path(HERE, package, "__init__.py")
    found = [Path(path) for path in (_imported(package), _importable(package)) if path]
    return [path for path in found if not (path == own or (path.exists() and path.samefile(own)))]


def _imported(package: str) -> str:
    module = sys.modules.get(package)
    if module is None:
        return ""
    return getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), package)


def _importable(package: str) -> str:
    """Return the file or folder that Python would import a package from; empty if there is none.

    It is not searched for by importlib.util, which looks at sys.modules.
    """
    for finder in sys.meta_path:
        spec = finder.find_spec(package, None) if hasattr(finder, "find_spec") else None
        if spec is not None:
            return spec.origin or next(iter(spec.submodule_search_locations or ()), package)
    return ""


def _lacks_backend(parser: pytest.Parser, args: list[str]) -> bool:
    """Whether the arguments have the option ``--backend``, and no other plugin defines it."""
    _, unknown = parser.parse_known_and_unknown_args(args)
    return any(option.partition("=")[0] == "--backend" for option in unknown)


def _is_module_of_suite(name: str) -> bool:
    return name.partition(".")[0] == SUITE


def _is_path_of_suite(name: str) -> bool:
    from pathlib import Path

    path, suite = Path(name).resolve(), Path(HERE, SUITE).resolve()
    return path == suite or suite in path.parents


if __name__ == "__main__":
    main()
