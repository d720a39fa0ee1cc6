"""The example that passes tensors to a browser: both halves, and a real browser if there is one.

``WEBNN_CHROMIUM`` names the browser (`examples/webnn/README.md`). Without it a stand-in, a script
of Node.js, runs the page over typed arrays, whose conversions are those of JavaScript.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.driver import BackendJudge
from conformance.extras.selftest import checks
from conformance.judging.asking import Settings
from oracles.backend.backend_supervisor import LaunchConfig
from oracles.backend.loading import close, load_isolated
from oracles.protocol import Unsupported
from oracles.registry import Backend
from reports.judgement import Judgement
from reports.problems import WrongTensor
from specs.selection import case_named
from tests.conformance.processes import castigate

EXAMPLE = Path(__file__).parents[2] / "examples" / "webnn"
STAND_IN = Path(__file__).parent / "data" / "stand_in_browser.js"
REAL = os.environ.get("WEBNN_CHROMIUM")
HELD = ("float32", "int32", "uint32", "int8", "uint8")
CLAIMS = ["webnn-cast", "webnn-dequantize-linear", "webnn-quantize-linear"]
FORMS = ("tensor", "axis", "block/block:16")
Load = Callable[..., Backend]

needs_the_browser = pytest.mark.skipif(
    not REAL, reason="WEBNN_CHROMIUM names no browser with WebNN"
)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nexec node {STAND_IN} "$@"\n', encoding="utf-8")
    browser.chmod(0o755)
    monkeypatch.setenv("WEBNN_CHROMIUM", str(browser))


@pytest.fixture
def load() -> Iterator[Load]:
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    backends: list[Backend] = []

    def load_example(folder: Path = EXAMPLE, words: str = "") -> Backend:
        name = f"exec:node {folder / 'program.js'} {words}".rstrip()
        backends.append(load_isolated(name, LaunchConfig()))
        return backends[-1]

    yield load_example
    for backend in backends:
        close(backend)


def changed(folder: Path, line: str, other: str) -> Path:
    """A copy of the example in which the page has another line."""
    copy = folder / "example"
    shutil.copytree(EXAMPLE, copy)
    text = (copy / "page.html").read_text(encoding="utf-8")
    assert text.count(line) == 1
    (copy / "page.html").write_text(text.replace(line, other), encoding="utf-8")
    return copy


def judged(backend: Backend, case: str) -> Judgement:
    return BackendJudge(backend, {}, Settings(max_examples=10)).judge(case_named(case))


def verdict(backend: Backend, source: str, target: str) -> str:
    return str(judged(backend, f"webnn-cast:draft/{source}/{target}").verdict)


def quantized(backend: Backend, source: str, target: str, form: str) -> Judgement:
    case = f"webnn-quantize-linear:draft/{source}/{target}/scale:{source}/form:{form}"
    return judged(backend, case)


def dequantized(backend: Backend, source: str, target: str, form: str) -> Judgement:
    case = f"webnn-dequantize-linear:draft/{source}/{target}/scale:{target}/form:{form}"
    return judged(backend, case)


def followed(judgement: Judgement) -> set[tuple[str, ...]]:
    return {each.followed for each in judgement.problems if isinstance(each, WrongTensor)}


def refusal() -> str:
    code, out, err = castigate("selftest", f"exec:node {EXAMPLE / 'program.js'}")
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    return err


@pytest.mark.usefixtures("stand_in")
class TestStandIn:
    @pytest.mark.parametrize("target", HELD)
    def test_casts_of_javascript_conform(self, load: Load, target: str) -> None:
        backend = load()
        assert [str(claim) for claim in backend.claimed] == CLAIMS
        found = {source: verdict(backend, source, target) for source in HELD}
        assert found == dict.fromkeys(HELD, "conforms")

    def test_a_required_type_that_is_refused_is_an_error_and_any_other_unsupported(
        self, load: Load
    ) -> None:
        backend = load()
        assert verdict(backend, "float16", "int8") == "error"
        assert verdict(backend, "int64", "int8") == "unsupported"
        assert verdict(backend, "int8", "uint64") == "unsupported"

    def test_a_sweep_gets_the_answers_of_a_cast(self, load: Load) -> None:
        oracle: Any = load().oracle
        case = case_named("webnn-cast:draft/float32/int32")
        first = 0x4A000000
        inputs = np.arange(first, first + 1000, dtype=np.uint32)
        assert (
            oracle.sweep(case, first, first + 1000)(first, 1000) == oracle.cast(case, inputs)
        ).all()

    def test_tensors_keep_their_shape_and_need_elements_and_five_dimensions(
        self, load: Load
    ) -> None:
        oracle, case = load().oracle, case_named("webnn-cast:draft/uint8/int8")
        for shape in ((), (2, 3), (1, 2, 1, 2, 1)):
            assert (
                oracle.cast(case, np.full(shape, 200, np.uint8)).tolist()
                == np.full(shape, 200, np.uint8).tolist()
            )
        for shape in ((0,), (2, 0, 3), (1, 1, 1, 1, 1, 1)):
            with pytest.raises(Unsupported):
                oracle.cast(case, np.zeros(shape, np.uint8))

    @pytest.mark.parametrize("words", ["", "--constants"])
    @pytest.mark.parametrize("form", FORMS)
    def test_quantization_by_the_formula_conforms(self, load: Load, form: str, words: str) -> None:
        backend = load(words=words)
        for codes in ("int8", "uint8", "int32"):
            assert quantized(backend, "float32", codes, form).verdict == "conforms"
            assert dequantized(backend, codes, "float32", form).verdict == "conforms"

    def test_a_type_of_codes_that_is_refused_is_an_error_if_it_is_required(
        self, load: Load
    ) -> None:
        backend = load()
        assert quantized(backend, "float16", "int8", "tensor").verdict == "error"
        other = judged(backend, "mx-blocks:1/float32/float8e5m2/rule:floor/block:32")
        assert other.verdict == "unsupported"

    def test_another_rounding_is_found_and_named(
        self, load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STAND_IN_ROUNDS_AWAY", "1")
        judgement = quantized(load(), "float32", "int8", "axis")
        assert (judgement.verdict, followed(judgement)) == ("violates", {("rounds-half-away",)})

    def test_a_graph_that_does_not_run_is_found(self, load: Load, tmp_path: Path) -> None:
        line = "context.dispatch(graph, tensors, { output: to });"
        assert verdict(load(changed(tmp_path, line, "")), "int8", "int32") == "violates"

    def test_a_browser_without_webnn_is_refused_in_one_line(
        self, load: Load, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("STAND_IN_LACKS_WEBNN", "1")
        assert "webnn: the page failed: TypeError: " in refusal()


def test_a_browser_is_needed(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEBNN_CHROMIUM", raising=False)
    assert "webnn: WEBNN_CHROMIUM is not set; set it to the path of a Chromium" in refusal()
    monkeypatch.setenv("WEBNN_CHROMIUM", "/no/such/browser")
    assert "webnn: the browser does not start: " in refusal()
    monkeypatch.setenv("WEBNN_CHROMIUM", "/bin/false")
    assert "webnn: the browser ended: 1" in refusal()


@needs_the_browser
class TestBrowser:
    def test_it_conforms_and_has_the_types_that_it_lists(self, load: Load) -> None:
        backend = load()
        for source in ("float32", "float16", "int64", "int32", "uint8"):
            for target in ("float32", "float16", "int32", "uint32", "int8"):
                assert verdict(backend, source, target) == "conforms", (source, target)
        assert verdict(backend, "uint64", "int8") == "unsupported"

    def test_another_graph_is_found(self, load: Load, tmp_path: Path) -> None:
        example = changed(
            tmp_path,
            "builder.cast(operands.input, target)",
            "builder.cast(builder.neg(operands.input), target)",
        )
        assert verdict(load(example), "float32", "int8") == "violates"

    def test_it_quantizes_but_for_subnormal_scales(self, load: Load) -> None:
        backend = load()
        for codes in ("int8", "uint8"):
            judgement = quantized(backend, "float32", codes, "tensor")
            assert followed(judgement) == {("treats-subnormals-as-zero",)}
            assert dequantized(backend, codes, "float16", "axis").verdict == "conforms"
            assert quantized(backend, "float16", codes, "axis").verdict == "deviates"

    def test_it_rounds_ties_away_where_scales_are_constants_along_an_axis(self, load: Load) -> None:
        judgement = quantized(load(words="--constants"), "float16", "uint8", "axis")
        assert judgement.verdict == "violates"
        assert followed(judgement) == {("divides-in-float32+rounds-half-away",)}

    def test_the_self_test_finds_nothing(self, load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(checks, "SECONDS_OF_A_FIGURE", 0.0)
        monkeypatch.setattr(checks, "LONGEST_ROW", checks.LONG_ROW)
        code, out, err = castigate("selftest", f"exec:node {EXAMPLE / 'program.js'}")
        assert (code, err) == (0, "")
        assert "BROKEN" not in out
