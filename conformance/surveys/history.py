"""Runs past versions of a framework, each in its own environment, and reports them like nights."""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from oracles.backend.replies import one_line

COMPLETE = "made"
"""An empty file in an environment in which everything is installed."""
CONFORMS, BREAKS_RULES, USAGE_ERROR = 0, 1, 2

app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, help=__doc__
)


@dataclass(frozen=True)
class History:
    """A framework's package, the backend that drives it, and the folders of checkout and output."""

    backend: str
    package: str
    checkout: Path
    out: Path

    def environment(self, version: str) -> Path:
        """Return the Python of an environment with a version of the framework; install if needed.

        The checkout is installed each time, since it may have changed.
        """
        folder = self.out / "environments" / version
        python = folder / "bin" / "python"
        install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        if not (folder / COMPLETE).exists():
            venv.create(folder, with_pip=True, clear=True)
            constraints = folder / "constraints.txt"
            pins = [*self.other_pins(), f"{self.package}=={version}", ""]
            constraints.write_text("\n".join(pins))
            with_extra = f"{self.checkout}[{self.backend}]"
            subprocess.run([*install, "-c", str(constraints), with_extra], check=True)
            (folder / COMPLETE).touch()
        again = ["--no-deps", "--force-reinstall", str(self.checkout)]
        subprocess.run([*install, *again], check=True)
        return python

    def other_pins(self) -> Iterator[str]:
        """Yield the checkout's constraints, except the one of the framework itself."""
        for line in (self.checkout / "constraints.txt").read_text().splitlines():
            if line.partition("==")[0].strip() != self.package:
                yield line

    def run_night(self, python: Path) -> int:
        """Run the backend in an environment as a night; return the exit code."""
        options = [f"--backend={self.backend}", f"--python={self.backend}={python}"]
        command = [sys.executable, "-m", "conformance.commands.main", "nightly", *options]
        return subprocess.run([*command, f"--out={self.out}"], check=False).returncode


@app.command()
def main(
    backend: Annotated[str, typer.Argument(help="The backend's name, also that of its extra.")],
    package: Annotated[str, typer.Argument(help="The framework's package.")],
    versions: Annotated[list[str], typer.Argument(help="Its versions, the oldest first.")],
    castigate: Annotated[
        Path, typer.Option(metavar="CHECKOUT", resolve_path=True, help="Castigate's checkout.")
    ],
    out: Annotated[
        Path, typer.Option(metavar="DIR", resolve_path=True, help="The folder of the nights.")
    ],
) -> None:
    """Create the environments that are missing, run every version, and report them all."""
    history = History(backend, package, castigate, out)
    for version in versions:
        try:
            python = history.environment(version)
        except (OSError, subprocess.CalledProcessError) as error:
            message = f"no environment of {package} {version}: {one_line(error)}"
            typer.echo(f"castigate: {message}", err=True)
            raise typer.Exit(USAGE_ERROR) from None
        code = history.run_night(python)
        if code not in (CONFORMS, BREAKS_RULES):
            raise typer.Exit(code)


if __name__ == "__main__":
    app(prog_name="python -m conformance.surveys.history")
