"""Whether two records are of one run: what matters for the answers must be the same."""

from __future__ import annotations

from reports.run_record import RunRecord


def differences(one: RunRecord, other: RunRecord) -> list[tuple[str, str]]:
    """What matters for the answers and is not the same, in words, as pairs."""
    here, there = _facts(one), _facts(other)
    return [
        (here.get(name, f"no {name}"), there.get(name, f"no {name}"))
        for name in here | there
        if here.get(name) != there.get(name)
    ]


def _facts(record: RunRecord) -> dict[str, str]:
    """What matters for the answers, as a user would say it; what was not given is not said."""
    selected, shard = record.selection, record.shard
    facts = {
        "castigate": record.suite,
        "backend": ", ".join(f"{backend.name} {backend.version}" for backend in record.backends),
        "--document": " --document ".join(selected.documents),
        "--source": selected.source,
        "--target": selected.target,
        "--tier": record.tier,
        "--seed": record.seed,
        "--max-examples": record.max_examples,
        "--shard": shard and str(shard),
    }
    told = {name: f"{name} {fact}" for name, fact in facts.items() if fact not in (None, "")}
    told["backend"] = told["backend"].removeprefix("backend ")
    for name, digest in record.documents.items():
        told[f"document {name}"] = f"document {name} of sha256 {digest}"
    return told
