"""The inputs of the tier quick show faults of parsers, of writers and of copies of texts."""

from __future__ import annotations

import pytest

from lab.mutants.trial import judge_mutant

FLOAT64, FLOAT32 = "onnx-cast:25/string/float64", "onnx-cast:25/string/float32"
INT64, INT32 = "onnx-cast:25/int64/string", "onnx-cast:25/int32/string"
COPY = "onnx-cast:25/string/string"
FAULTS = (
    f"reads-768-significant-digits@{FLOAT64}",
    f"reads-768-significant-digits@{FLOAT32}",
    "reads-768-significant-digits@onnx-cast:25/string/float8e5m2/saturate:1",
    f"reads-sixteen-digits-in-doubles@{FLOAT64}",
    f"reads-through-64-bits@{FLOAT64}",
    f"reads-nineteen-digits-through-96-bits@{FLOAT64}",
    f"reads-leading-zeros-as-octal@{FLOAT64}",
    "reads-leading-zeros-as-octal@onnx-cast:25/string/int8",
    f"reads-an-exponent-as-at-most-999@{FLOAT64}",
    f"reads-four-digits-of-an-exponent@{FLOAT32}",
    f"loses-a-block-of-eight-zeros@{INT64}",
    "loses-a-block-of-eight-zeros@onnx-cast:25/uint64/string",
    f"loses-the-one-of-a-power-of-ten@{INT64}",
    f"loses-the-one-of-a-power-of-ten@{INT32}",
    f"loses-nuls-at-the-end@{COPY}",
    f"ends-at-a-nul@{COPY}",
    f"loses-a-byte-order-mark@{COPY}",
    f"replaces-what-is-beyond-16-bits@{COPY}",
    f"replaces-what-is-not-ascii@{COPY}",
    f"composes-characters@{COPY}",
    f"turns-crlf-into-lf@{COPY}",
    f"turns-cr-into-lf@{COPY}",
    f"loses-space-at-the-end@{COPY}",
    f"loses-tabs@{COPY}",
    f"copies-65535-bytes@{COPY}",
)


@pytest.mark.ci_runs_one_of(5)
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_texts_is_found_by_single_values(name: str) -> None:
    found = judge_mutant(name)
    assert found.killed_by == "values", found
