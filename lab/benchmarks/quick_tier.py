"""How long the quick tier takes on each backend, as whole processes in one run.

Every figure is also a ratio to the first one, since absolute times drift with the machine.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import time

from oracles.registry import installed

PYTEST = ["-m", "pytest", "--pyargs", "conformance", "-q", "--tb=no", "-r", "N"]


def measure(backend: str, processes: int) -> tuple[float, str]:
    """Time one whole run; return its seconds, and the last line of pytest without the time."""
    spread = ["-n", str(processes), "--dist", "worksteal"] if processes > 1 else []
    command = [sys.executable, *PYTEST, "-p", "no:cacheprovider", f"--backend={backend}", *spread]
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - start
    if done.returncode not in (0, 1):
        raise SystemExit(f"{backend}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return seconds, re.sub(r" in [\d.]+s.*", "", done.stdout.splitlines()[-1])


def main() -> None:
    """Print a table and a line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("backends", nargs="*", default=list(installed()))
    options = parser.parse_args()
    times: dict[str, float] = {}
    for backend in options.backends:
        times[backend], outcome = measure(backend, options.processes)
        ratio = times[backend] / times[options.backends[0]]
        print(f"{backend:<12} {times[backend]:7.1f} s  x{ratio:5.2f}  {outcome}", flush=True)
    print(json.dumps({"processes": options.processes, "seconds": times}))


if __name__ == "__main__":
    main()
