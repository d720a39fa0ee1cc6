"""Past versions of a framework, each in an environment of its own, reported like nights."""

from __future__ import annotations

import argparse
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

from conformance.judging.answers import one_line

MADE = "made"
"""An empty file in an environment that is complete."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Make what environments are missing, run every version, and report them all."""
    options = argparse.ArgumentParser(
        prog="python -m conformance.running.history", description=__doc__
    )
    options.add_argument("backend", help="the backend's name, also its extra's")
    options.add_argument("package", help="the framework's package")
    options.add_argument("versions", nargs="+", help="its versions, the oldest first")
    options.add_argument("--castigate", type=_absolute, required=True, metavar="CHECKOUT")
    options.add_argument("--out", type=_absolute, required=True, metavar="DIR")
    wanted = options.parse_args(arguments)
    for version in wanted.versions:
        try:
            python = _environment(wanted, version)
        except (OSError, subprocess.CalledProcessError) as error:
            which = f"{wanted.package} {version}"
            print(f"castigate: no environment of {which}: {one_line(error)}", file=sys.stderr)
            return 2
        told = [f"--backend={wanted.backend}", f"--python={wanted.backend}={python}"]
        command = [sys.executable, "-m", "conformance.commands.main", "nightly", *told]
        ended = subprocess.run([*command, f"--out={wanted.out}"], check=False)
        if ended.returncode not in (0, 1):
            return ended.returncode
    return 0


def _absolute(word: str) -> Path:
    return Path(word).resolve()


def _environment(wanted: argparse.Namespace, version: str) -> Path:
    """The Python of an environment with one version of the framework, and the checkout as it is."""
    home: Path = wanted.out / "environments" / version
    python = home / "bin" / "python"
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    if not (home / MADE).exists():
        venv.create(home, with_pip=True, clear=True)
        constraints = home / "constraints.txt"
        pins = [*_other_pins(wanted), f"{wanted.package}=={version}", ""]
        constraints.write_text("\n".join(pins))
        everything = f"{wanted.castigate}[{wanted.backend}]"
        subprocess.run([*install, "-c", str(constraints), everything], check=True)
        (home / MADE).touch()
    again = ["--no-deps", "--force-reinstall", str(wanted.castigate)]
    subprocess.run([*install, *again], check=True)
    return python


def _other_pins(wanted: argparse.Namespace) -> Iterator[str]:
    """The checkout's constraints but for the framework's own."""
    for line in (wanted.castigate / "constraints.txt").read_text().splitlines():
        if line.partition("==")[0].strip() != wanted.package:
            yield line


if __name__ == "__main__":
    sys.exit(main())
