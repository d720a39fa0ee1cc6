"""``python -m oracles.proof``: prove the reference, and report what was proved."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from pathlib import Path

from oracles.proof.exhaustion import prove_by_exhaustion
from oracles.proof.obligations import Obligation
from oracles.proof.page import write_page
from oracles.proof.smt_queries import TIME_LIMIT, prove_by_solver


def main() -> int:
    """Prove and print one line per obligation; return 0 if everything is proved, else 1."""
    parser = argparse.ArgumentParser(prog="python -m oracles.proof", description=__doc__)
    parser.add_argument("--solver", action="store_true", help="only prove by the SMT solver")
    parser.add_argument("--exhaustion", action="store_true", help="only prove by exhaustion")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--timeout", type=float, default=TIME_LIMIT, help="seconds per obligation")
    parser.add_argument("--page", type=Path, help="write the page that lists every obligation")
    options = parser.parse_args()
    both = options.solver == options.exhaustion
    obligations: list[Obligation] = []
    if both or options.solver:
        obligations += prove_by_solver(options.jobs, options.timeout, _print)
    if both or options.exhaustion:
        obligations += prove_by_exhaustion(options.jobs, _print)
    counts = Counter(obligation.verdict for obligation in obligations)
    if options.page is not None:
        write_page(obligations, options.page)
    print(", ".join(f"{count} {verdict}" for verdict, count in counts.items()))
    return 0 if counts["proved"] == len(obligations) else 1


def _print(obligation: Obligation) -> None:
    print(obligation, flush=True)


if __name__ == "__main__":
    sys.exit(main())
