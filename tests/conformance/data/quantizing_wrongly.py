"""The reference, but for one code of int8, and one scale of blocks by the rule `ceil`."""

from collections.abc import Mapping
from typing import Any

from conformance.families.reference import Reference
from specs.cases import Case

RIGHT = Reference()


class Planted:
    name, version = "planted", "1"
    claims = ("onnx-quantize-linear", "mx-blocks")

    def cast(self, case: Case, bits: Any) -> Any:
        return RIGHT.cast(case, bits)

    def quantize(self, case: Case, tensors: Mapping[str, Any]) -> Mapping[str, Any]:
        found = dict(RIGHT.quantize(case, tensors))
        if case.target == "int8" and case.document == "onnx-quantize-linear":
            found["y"] = found["y"] ^ (found["y"] == 7).astype(found["y"].dtype)
        if case.mode.get("rule") == "ceil":
            found["scale"] = found["scale"] + (found["scale"] == 0x7F).astype(found["scale"].dtype)
        return found
