"""The public threads about a pair of dtypes, of which the docket has the facts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from reports.findings.finding import DOCKET
from specs.model.yaml_file import read_yaml


@dataclass(frozen=True)
class Thread:
    """A public thread: its address, and what it reports in a sentence."""

    link: str
    report: str


@cache
def threads_by_pair() -> Mapping[tuple[str, str], tuple[Thread, ...]]:
    """Map each pair of dtypes to the threads that ask about it, in the order of the docket.

    Of a chain of casts, the first two dtypes count. ``castigate docket`` checks the files.
    """
    found: dict[tuple[str, str], dict[Thread, None]] = {}
    for path in sorted(DOCKET.glob("*.yaml")):
        for link, entry in read_yaml(path).data["threads"].items():
            for question in entry["questions"]:
                _, source, target, *_ = question["case"].split("/")
                found.setdefault((source, target), {})[Thread(link, entry["report"])] = None
    return {pair: tuple(threads) for pair, threads in found.items()}
