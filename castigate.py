"""Entry points of the command ``castigate`` and of the pytest plugin.

Every pytest in an environment that has castigate loads this module, in projects too that have
packages of their own named like castigate's. So it imports none of castigate's packages until one
is needed, and checks first that Python finds castigate's and not the project's.
"""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import sys
from collections.abc import Generator, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

# Not from pytest, which the command need not load.
from pluggy import HookimplMarker

if TYPE_CHECKING:
    import pytest

PACKAGES = ("specs", "oracles", "reports", "conformance")
SUITE = "conformance"
HERE = Path(__file__).parent
hookimpl = HookimplMarker("pytest")


def main() -> None:
    """Run the command ``castigate``; exit with code 2 if another package hides one of its own."""
    _handle_signals()
    if problem := hidden_package():
        _complain(problem)
        sys.exit(2)
    importlib.import_module("conformance.commands.main").main()


ENDINGS = {signal.SIGINT: ("interrupted", 130), signal.SIGTERM: ("terminated", 143)}
"""The line that is printed on each signal, and the exit code."""


def _handle_signals() -> None:
    """Have Ctrl-C and SIGTERM end the process at once, unless they are ignored.

    That is for the time in which no command runs: a command replaces these handlers by exceptions.
    But a module that is being imported might catch an exception, and when Python ends nothing
    handles one.
    """
    taken = [
        number
        for number in ENDINGS
        if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler)
    ]
    for number in taken:
        signal.signal(number, _end_at_once)
    # The first that is registered is called last. Then Python removes handlers of its own, but
    # goes on to ignore what is ignored: the result is complete, and is not lost any more.
    atexit.register(_ignore_signals, taken)


def _end_at_once(number: int, frame: object) -> None:
    line, code = ENDINGS[signal.Signals(number)]
    _complain(line)
    os._exit(code)


def _ignore_signals(numbers: Iterable[signal.Signals]) -> None:
    for number in numbers:
        signal.signal(number, signal.SIG_IGN)


def _complain(message: str) -> None:
    """Print a message on stderr, or nothing if that is closed: the exit code says the same."""
    if sys.stderr is not None:
        with suppress(OSError):
            sys.stderr.write(f"castigate: {message}\n")
            sys.stderr.flush()


@hookimpl(wrapper=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser, args: list[str]
) -> Generator[None, object, object]:
    """Register the suite's plugin if an argument names the suite.

    Raises pytest.UsageError if the suite is meant, but another package hides one of castigate's.
    """
    # After the conftest.py files: they may import a project's packages, or add to sys.path.
    result = yield
    known = early_config.known_args_namespace
    names = [str(argument).partition("::")[0] for argument in known.file_or_dir]
    is_named_by_path = any(_is_path_of_suite(name) for name in names)
    if not is_named_by_path and not (known.pyargs and any(map(_is_module_of_suite, names))):
        return result
    problem = hidden_package()
    if not problem:
        plugin = importlib.import_module("conformance.pytest_plugin.plugin")
        early_config.pluginmanager.register(plugin, "castigate-suite")
    # `--pyargs conformance` may mean the tests of a project that has a package of this name.
    elif is_named_by_path or not _hiding(SUITE) or _lacks_backend(parser, args):
        import pytest

        raise pytest.UsageError(f"castigate: {problem}")
    return result


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
    own = HERE / package / "__init__.py"
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
    path, suite = Path(name).resolve(), (HERE / SUITE).resolve()
    return path == suite or suite in path.parents


if __name__ == "__main__":
    main()
