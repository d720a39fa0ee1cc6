"""Lists tests that are too slow for every change; ``tox -e nightly-tests`` runs them."""

from __future__ import annotations

from collections import Counter

import pytest

NIGHTLY = {
    # The definition is one value at a time in Python: CI takes some of the rulings and formats.
    # Half a minute each; CI kills a run as it is finished in a store, and a cluster's worker.
    # `tox -e proof` runs the whole proof; CI proves some rulings and finds every planted fault.
    # Compiling takes seconds per ruling.
    # Sweeps of 2**32 inputs: one fault among all inputs and one run with two jobs stay in CI.
    "wire/test_vendor_c.py::test_a_sweep_finds": 0,
    "wire/test_vendor_onnx.py::": 2,
    "wire/test_vendor_c.py::test_other_requests": 0,
    "wire/test_program_oracle.py::test_run_at_full_tier": 0,
    # Whole commands and their processes: CI keeps one of several that differ in one detail.
    "html/test_browser.py::test_a_page_is_accessible": 4,
    "html/test_browser.py::test_a_page_opens": 3,
    "html/test_browser.py::test_a_page_fits": 3,
    "html/test_site.py::test_a_change_in_one_cell": 4,
    "html/test_site.py::test_incomplete": 0,
    "html/test_site.py::test_two_processes_write": 0,
    "isolation/test_isolated_oracle.py::test_a_crash_names_only": 10,
    "isolation/test_isolated_oracle.py::test_one_guilty_input_in_a_million": 0,
    "isolation/test_isolated_oracle.py::test_a_crash_on_two": 0,
    "isolation/test_isolated_oracle.py::test_the_guilty_input": 2,
    "isolation/test_isolated_oracle.py::test_an_answer_is_no_crash": 5,
    "isolation/test_other_python.py::test_castigate_run_prints": 0,
    "wire/test_hostile_program.py::test_an_invalid_reply": 8,
    "wire/test_hostile_program.py::test_a_failed_handshake": 3,
    "wire/test_hostile_program.py::test_a_run_goes_on": 4,
    "wire/test_hostile_program.py::test_castigate_run_prints": 3,
    "wire/test_stderr_log.py::test_a_run_keeps_both_ends": 0,
    "wire/test_stderr_log.py::test_a_certificate": 0,
    "wire/test_vendor_c.py::test_a_fault_breaks": 4,
    # Scripts load a framework anew; benchmarks are code that no user runs.
    "adapters/test_contract.py::TestScripts": 8,
    "test_benchmarks.py::": 0,
}
"""The beginning of a test's id, and of how many of its parameters CI runs one; 0: none."""


def mark_nightly(items: list[pytest.Item]) -> None:
    """Mark what CI leaves to the night."""
    counts: Counter[str] = Counter()
    for item in items:
        name = item.nodeid.removeprefix("tests/")
        for start, every in NIGHTLY.items():
            if name.startswith(start):
                if not every or counts[start] % every:
                    item.add_marker(pytest.mark.nightly)
                counts[start] += 1
