"""Every benchmark ends with a table and its figures; no test depends on speed."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.benchmarks import every_pair, peers, scaling, sweep
from lab.benchmarks.pair import ALIKE, CHUNK, parts, prepared
from lab.benchmarks.peers import spread

pytestmark = pytest.mark.nightly  # no user runs this code

# The noise loads no framework and costs nothing.
PAIR = ["--backend=lab.benchmarks.noise:Noise", "--pair=float32/float16"]
HASTY = [*PAIR, "--repeat=1", f"--range={2 * CHUNK}"]
Figures = dict[str, Any]


def figures_of(main: Callable[[list[str]], None], arguments: list[str], folder: Path) -> Figures:
    path = folder / "figures.json"
    main([*arguments, f"--json={path}"])
    figures: Figures = json.loads(path.read_text(encoding="utf-8"))
    assert {"castigate", "python", "packages", "cpus", "date", "options"} <= figures.keys()
    return figures


def test_the_sweeps_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = figures_of(sweep.main, [*HASTY, "--jobs=1"], tmp_path)
    [pair] = figures["pairs"]
    assert pair["wrong"] == 2 * CHUNK
    assert all(len(seconds) == 1 for seconds in pair["seconds"].values())
    assert {name for name in pair["seconds"] if name.endswith("16 tables")}
    assert figures["worst"]["wrong"] == figures["worst"]["inputs"] == 2 * CHUNK
    shown = capsys.readouterr().out
    assert "whole sweeps" in shown
    assert "all counted" in shown


def test_the_benchmark_of_every_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hasty = [PAIR[0], "--source=float32", "--target=float16", "--seconds=0", "--repeat=1"]
    [pair] = figures_of(every_pair.main, hasty, tmp_path)["pairs"]
    assert pair["wrong"] == pair["inputs"] == every_pair.WINDOWS * CHUNK
    assert len(pair["alone"]) == len(pair["sweep"]) == 1
    assert "1 pairs: median" in capsys.readouterr().out


def test_the_device_sweeps_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    device_sweep: Any = importlib.import_module("lab.benchmarks.device_sweep")
    hasty = ["--device=cpu", "--pair=float32/float16", "--repeat=1", f"--range={CHUNK + 1}"]
    figures = figures_of(device_sweep.main, hasty, tmp_path)
    [pair] = figures["pairs"]
    assert (pair["wrong"], set(pair["seconds"])) == (0, {"least", "cast alone", "sweep"})
    assert "sweep / least" in capsys.readouterr().out


def test_what_lets_everything_pass_is_not_timed() -> None:
    pytest.importorskip("torch")
    chosen = prepared("torch", "float32", "bfloat16").chosen
    # CINN's document, which torch fulfils, leaves every rounding open.
    assert not [name for name in chosen.judging if name.startswith("cinn-cast:")]
    assert chosen.is_open < ALIKE


def test_the_clusters_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("distributed")
    cluster: Any = importlib.import_module("lab.benchmarks.cluster")
    hasty = ["--backend=reference", "--pair=float8e5m2/float16", "--tier=quick", "--repeat=1"]
    figures = figures_of(cluster.main, [*hasty, "--jobs=1"], tmp_path)
    assert {name: len(seconds) for name, seconds in figures["seconds"].items()} == {
        "local": 1,
        "cluster": 1,
    }
    assert "throughput" in capsys.readouterr().out


def test_the_scaling_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = figures_of(scaling.main, [*HASTY, "--jobs=2"], tmp_path)
    assert [pair["task"] for pair in figures["pairs"]] == ["cast alone", "sweep"]
    assert "times faster" in capsys.readouterr().out


def test_the_peers_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = figures_of(peers.main, ["--count=50", "--seconds=0"], tmp_path)
    ours = [peer for peer in figures["peers"] if peer["peer"].startswith("this project")]
    assert all(peer["compared"] and not peer["wrong"] for peer in ours if not peer["missing"])
    for peer in figures["peers"]:
        # Peers may differ from a document only by answering another NaN.
        assert peer["wrong"] == peer["other_nan"], peer
    assert "extrapolated" in capsys.readouterr().out


def test_parts_are_whole_chunks_and_leave_nothing_out() -> None:
    assert parts(0, 1 << 32, 2) == [(0, 1 << 31), (1 << 31, 1 << 32)]
    assert parts(0, 5 * CHUNK + 7, 3) == [
        (0, 2 * CHUNK),
        (2 * CHUNK, 4 * CHUNK),
        (4 * CHUNK, 5 * CHUNK + 7),
    ]
    assert parts(CHUNK, 2 * CHUNK, 2) == [(CHUNK, 2 * CHUNK)]


def test_patterns_are_spread_one_to_each_part() -> None:
    patterns = spread(1000)
    assert ((patterns.astype(object) * 1000 >> 32) == range(1000)).all()
