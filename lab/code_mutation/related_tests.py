"""Which tests belong to a module: one of them must fail for each of its mutants."""

from __future__ import annotations

from fnmatch import fnmatch

RELATED = (
    ("reports/findings/codec_wrongs.py", "conformance/extras/codec/codec"),
    ("specs/behaviors.py", "reports/behavior_file reports/behavior_search"),
    ("specs/house_*.py", "specs/house_rules conformance/house_rules"),
    ("specs/questions.py", "specs/questions"),
    (
        "specs/*call*.py specs/editions.py",
        "specs/call_documents specs/call_mistakes"
        " conformance/families/call/dispatch conformance/families/call/judge",
    ),
    (
        "specs/coverage*.py specs/model/page_lines.py specs/lint.py",
        "specs/coverage specs/lint_errors specs/lint_command html/page_lines",
    ),
    (
        "specs/formats.py",
        "specs/formats specs/small_floats specs/pairs specs/lint_errors"
        " reference/exact reports/number_line",
    ),
    (
        "specs/model/cache.py specs/model/yaml_*.py specs/model/strict_model.py"
        " specs/json_source.py specs/plain_text.py specs/loader.py",
        "specs/load specs/plain_text specs/yaml_limits specs/cache specs/schema specs/lint_errors"
        " reports/gate_policy",
    ),
    (
        "specs/model/*.py",
        "specs/schema specs/lint_errors specs/call_mistakes specs/bitcast_mistakes"
        " specs/onnx_page specs/pypto_page specs/webnn_page specs/openvino_page"
        " specs/numpy_page specs/array_api_page specs/wasm_page"
        " specs/call_documents specs/bitcast_documents",
    ),
    (
        "specs/*.py",
        "specs/totality specs/lint_errors specs/onnx_page specs/pypto_page specs/webnn_page"
        " specs/openvino_page specs/numpy_page specs/array_api_page specs/wasm_page"
        " specs/call_documents"
        " reference/expect_by_staircase reports/staircase_grades conformance/judge"
        " conformance/claims conformance/document_listing",
    ),
    (
        "oracles/reference/exact_text.py oracles/reference/kernel_text.py",
        "reference/text reference/read_back conformance/spelling",
    ),
    (
        "oracles/reference/kernel_terms.py",
        "reference/kernel_terms reference/compiled_kernels lab/proof/smt_queries",
    ),
    (
        "oracles/reference/staircase*.py oracles/reference/expect_by_staircase.py",
        "reference/expect_by_staircase reference/staircase_lookup reference/staircase"
        " reports/staircase_grades",
    ),
    (
        "oracles/reference/sweep_inputs.py",
        "conformance/sweep/engine reports/chunk_check",
    ),
    (
        "oracles/reference/reference_oracle.py",
        "reference/reference_oracle reference/text conformance/sweep/engine"
        " conformance/families/call/judge",
    ),
    ("oracles/reference/chain*.py", "conformance/families/chains/composition"),
    ("oracles/reference/exact_rulings.py", "reports/behavior_search specs/house_rules"),
    (
        "oracles/reference/*.py",
        "reference/exact reference/compiled_kernels reference/kernel_terms reference/input_classes"
        " reference/reference_oracle reference/expect_by_staircase reference/agreement"
        " reference/words",
    ),
    (
        "reports/grading/chunk*.py reports/grading/uniform_checksums.py",
        "reports/chunk_check reports/uniform_checksums conformance/sweep/engine"
        " conformance/sweep/bound_sweep",
    ),
    (
        "reports/grading/failure_runs*.py",
        "reports/failure_runs reports/intervals conformance/sweep/engine",
    ),
    (
        "reports/grading/staircase_grades*.py reports/grading/allowed_answers.py",
        "reports/staircase_grades conformance/sweep/engine conformance/families/cast/follow",
    ),
    (
        "reports/grading/*.py",
        "conformance/judge conformance/families/cast/planted_faults reports/staircase_grades"
        " conformance/sweep/engine reports/backend_comparison reports/behavior_search",
    ),
    (
        "reports/findings/*change*.py reports/findings/report.py reports/findings/report.py"
        " reports/findings/verdict_signs.py"
        " reports/findings/issue_text.py reports/findings/finding.py",
        "reports/upstream reports/changes reports/findings html/behaviors html/front",
    ),
    (
        "reports/findings/read_*.py reports/findings/judged_cells.py reports/findings/cells.py",
        "reports/read_cells reports/changes reports/finding_causes reports/findings",
    ),
    (
        "reports/findings/*.py",
        "reports/intervals reports/number_line reports/finding_causes reports/findings"
        " reports/known_failures",
    ),
    (
        "reports/gate/*.py",
        "reports/gate_policy reports/fault_comparison reports/gate_judging reports/gate_baseline"
        " reports/gate_certificate",
    ),
    (
        "reports/ledger/*.py reports/known_failures.py",
        "reports/known_failures reports/ledger reports/run_ledgers reports/upstream",
    ),
)
"""Patterns of modules, and the test files of the first that fits: ``specs/load`` is
``tests/specs/test_load.py``. Quick files stand first, as the first failure ends a trial."""


def related_files(file: str) -> tuple[str, ...]:
    """The test files of a module, as paths from the root; KeyError if the table lacks it."""
    for patterns, tests in RELATED:
        if any(fnmatch(file, pattern) for pattern in patterns.split()):
            parts = (test.rpartition("/") for test in tests.split())
            return tuple(f"tests/{folder}/test_{name}.py" for folder, _, name in parts)
    raise KeyError(f"`{file}` has no tests in {__name__}")
