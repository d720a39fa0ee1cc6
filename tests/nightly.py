"""Lists tests that are too slow for every change; ``tox -e nightly-tests`` runs them."""

from __future__ import annotations

from collections import Counter

import pytest

NIGHTLY = {
    # The definition is one value at a time in Python: CI takes some of the rulings and formats.
    "conformance/test_spelling.py::test_each_exact_decimal": 8,
    "conformance/test_spelling.py::test_a_decimal_between": 3,
    "conformance/test_invariances.py::test_the_reference_answers_alike_everywhere": 2,
    "conformance/test_invariances.py::test_a_layout_reaches": 3,
    "conformance/test_invariances.py::test_a_specified_answer_that_changes": 3,
    "conformance/test_visits.py::test_the_inputs_below": 3,
    "conformance/test_visits.py::test_inputs_rise": 3,
    "conformance/test_judge_bitcasts.py::test_the_verdict_is_that_of_a_run": 3,
    # Half a minute each; CI kills a run as it is finished in a store, and a cluster's worker.
    "conformance/test_object_stores.py::test_killed_writers": 0,
    "conformance/test_object_stores.py::test_nights_in_a_store": 0,
    "conformance/test_clusters.py::test_the_tasks_of_a_worker_that_hangs": 0,
    # `tox -e proof` runs the whole proof; CI proves some rulings and finds every planted fault.
    # Compiling takes seconds per ruling.
    # Sweeps of 2**32 inputs: one fault among all inputs and one run with two jobs stay in CI.
    "conformance/test_full_sweep.py::": 16,
    "conformance/test_exact_counts.py::test_a_sweep_of_all_inputs": 0,
    "conformance/test_full_tier.py::test_both_ways_find_the_same": 0,
    "conformance/test_full_tier.py::test_a_failure_shows": 0,
    "conformance/test_full_tier.py::test_where_shapes": 0,
    "conformance/test_run.py::test_full_counts_wrong_roundings": 0,
    "conformance/test_run.py::test_full_counts_all_wrong_answers": 0,
    "conformance/test_run.py::test_a_run_of_64_bit_sources": 0,
    "conformance/test_run.py::test_tables_are_the_same": 2,
    "conformance/test_run.py::test_merged_shards": 0,
    "conformance/test_run.py::test_resume_repeats": 0,
    "conformance/test_sweep.py::test_counts_are_exact_for_each": 8,
    "conformance/test_sweep.py::test_the_parts_of_any_cut": 4,
    "wire/test_vendor_c.py::test_a_sweep_finds": 0,
    "wire/test_vendor_onnx.py::": 2,
    "wire/test_vendor_c.py::test_other_requests": 0,
    "wire/test_program_oracle.py::test_run_at_full_tier": 0,
    # Whole commands and their processes: CI keeps one of several that differ in one detail.
    "conformance/test_crashes.py::test_a_death_is_the_verdict": 6,
    "conformance/test_crashes.py::test_a_death_in_a_sweep": 0,
    "conformance/test_crashes.py::test_a_death_is_the_same_in_shards": 0,
    "conformance/test_crashes.py::test_a_backend_that_dies_costs": 0,
    "conformance/test_crashes.py::test_who_dies_on_one_of_two": 0,
    "conformance/test_crashes.py::test_who_cannot_be_loaded": 8,
    "conformance/test_crashes.py::test_a_lie_about": 0,
    "conformance/test_diff_command.py::test_nothing_is_printed": 0,
    "conformance/test_diff_command.py::test_runs_without": 0,
    "conformance/test_gate_command.py::test_divergences_of_the_baseline": 0,
    "conformance/test_gate_command.py::test_the_time_limit": 0,
    "conformance/test_gate_command.py::test_replay": 0,
    "conformance/test_gate_command.py::test_a_gate_that_ran_nothing": 0,
    "conformance/test_helpers.py::test_short_runs_and_xdist": 0,
    "conformance/test_helpers.py::test_a_long_run_with": 0,
    "conformance/test_hostile_adapters.py::test_in_a_real_run": 0,
    "conformance/test_claims.py::TestCommands": 0,
    "conformance/test_backends_command.py::test_variants_are": 0,
    "conformance/test_helpers.py::test_pytest_judges_what_a_lost_helper": 0,
    "conformance/test_history.py::": 0,
    "conformance/test_kills.py::test_kills_at_random_moments": 0,
    "conformance/test_kills.py::test_resume_takes": 0,
    "conformance/test_kills.py::test_no_worker_outlives": 3,
    "conformance/test_ledger.py::test_a_partial_run_updates_nothing": 9,
    "conformance/test_ledger.py::test_an_update_is_reproducible": 0,
    "conformance/test_ledger.py::test_an_update_for_another_version": 0,
    "conformance/test_ledger.py::test_a_run_that_lost_a_worker": 0,
    "conformance/test_ledger.py::test_the_level_applies": 0,
    "conformance/test_ledger.py::test_errors_and_crashes": 0,
    "conformance/test_ledger.py::test_a_link": 0,
    "conformance/test_ledger.py::test_entries_of_other": 0,
    "conformance/test_ledger.py::test_nothing_is_excused": 0,
    "conformance/test_ledger.py::test_a_ledger_is_not_used": 0,
    "conformance/test_ledger.py::test_no_ledger_excuses": 0,
    "conformance/test_ledger.py::test_a_backend_without": 0,
    "conformance/test_ledger.py::test_a_region_that_changed": 2,
    "conformance/test_nightly.py::test_the_same_night_again": 0,
    "conformance/test_nightly.py::test_the_options_of_a_night": 0,
    "conformance/test_planted.py::": 0,
    "conformance/test_progress.py::test_a_bar_on_a_terminal": 3,
    "conformance/test_progress.py::test_names_are_not_markup": 0,
    "conformance/test_progress.py::test_the_death_of_a_worker": 0,
    "conformance/test_progress.py::test_an_interrupted_run_says": 0,
    "conformance/test_progress.py::test_without_a_terminal": 0,
    "conformance/test_progress.py::test_an_interrupt_at_any_moment": 3,
    "conformance/test_suite.py::test_a_backend_that_xdist_workers": 0,
    "conformance/test_suite.py::test_bad_usage_ends_with_advice": 6,
    "conformance/test_suite.py::test_only_xdist": 0,
    "conformance/test_suite.py::test_a_node_id": 0,
    "conformance/test_suite.py::test_xdist": 0,
    "conformance/test_suite.py::test_the_level": 0,
    "conformance/test_suite.py::test_an_unclaimed": 0,
    "conformance/test_run.py::test_a_run_overwrites": 8,
    "conformance/test_run.py::test_an_impossible_merge": 3,
    "conformance/test_judge_lines.py::test_a_spelling_is_written_back": 11,
    "conformance/test_export_coverage.py::": 0,
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
