"""How long ``castigate judge`` takes over 100,000 lines, as a whole process."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from lab.benchmarks.answers import all_cases, one_case

LINES = 100_000
RUNS = 5
COMMAND = [sys.executable, "-c", "from conformance.commands.main import main; main()", "judge"]


def seconds(path: Path) -> float:
    """Run one whole process, and return its seconds."""
    start = time.perf_counter()
    done = subprocess.run([*COMMAND, str(path)], stdout=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise SystemExit(f"judge ended with {done.returncode}")
    return time.perf_counter() - start


def main() -> None:
    """Print a table and a line of JSON."""
    kinds = {
        "one case": one_case("onnx-cast:25/float32/float8e4m3fn/saturate:0", LINES),
        "all cases": all_cases(LINES),
        "start-up only": one_case("onnx-cast:25/float32/float16", 1),
    }
    medians: dict[str, float] = {}
    with TemporaryDirectory() as folder:
        for kind, lines in kinds.items():
            path = Path(folder) / "answers.jsonl"
            path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
            medians[kind] = statistics.median(seconds(path) for _ in range(RUNS))
            print(f"{kind:<14} {medians[kind]:6.2f} s (median of {RUNS})")
    print(json.dumps({"lines": LINES, "medians": medians}))


if __name__ == "__main__":
    main()
