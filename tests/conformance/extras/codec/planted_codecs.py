"""The planted codecs: how each is called, and what has to be found."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from conformance.extras.codec.target import codec_case
from specs.cases import Case
from specs.formats import dtype_spelled

FOLDER = Path(__file__).parent / "codecs"
HEADER = FOLDER / "planted.h"


class Planted(NamedTuple):
    """A codec with a fault, and the names of its findings.

    ``thread`` is the public thread about such a fault, if there is one.
    """

    function: str
    form: str
    findings: tuple[str, ...]
    overflow: str | None = None
    decodes: bool = False
    thread: str = ""
    needs_float32: bool = False
    """Whether the fault does not show in float16."""
    most: str = ""
    """A further finding where all of float32 is asked: another fault that answers most inputs so.

    Almost half of these inputs are smaller than any code. If they become the smallest code of their
    sign, that is rounding up and down, and at the same time rounding to odd.
    """

    def case(self, wide: str) -> Case:
        """The case by which it is judged."""
        overflow = None if self.decodes else self.overflow
        return codec_case(dtype_spelled(self.form), wide, not self.decodes, None, overflow)

    @property
    def target(self) -> str:
        """The target as the command takes it."""
        return f"c:{HEADER}:{self.function}"


def _decoder(function: str, form: str, finding: str, thread: str = "") -> Planted:
    return Planted(function, form, (finding,), decodes=True, thread=thread)


PLANTED = (
    Planted(
        "subnormals_flushed",
        "e4m3fn",
        ("subnormals-become-zero",),
        thread="ROCm/rocm-libraries#11325",
    ),
    Planted("below_normal_flushed", "e4m3fn", ("below-normal-becomes-zero",)),
    Planted(
        "half_flushed",
        "float16",
        ("subnormals-become-zero",),
        "inf",
        thread="ROCm/rocm-libraries#11325",
        needs_float32=True,
    ),
    Planted(
        "half_payload_lost",
        "float16",
        ("infinity",),
        "inf",
        thread="ROCm/rocm-libraries#11325",
        needs_float32=True,
    ),
    Planted("ties_away", "e4m3fn", ("as-round-nearest-away",), thread="triton-lang/triton#11897"),
    Planted("smallest_away", "e2m1", ("as-round-nearest-away",), thread="ROCm/aiter#3992"),
    Planted("truncates", "e4m3fn", ("as-round-toward-zero",)),
    Planted(
        "bf16_truncates",
        "bfloat16",
        ("as-round-toward-zero",),
        "inf",
        thread="stillwater-sc/universal#1133",
        needs_float32=True,
    ),
    Planted("subnormals_truncated", "e5m2", ("as-round-toward-zero",), "inf"),
    Planted("rounds_up", "e4m3fn", ("as-round-ceil", "as-round-floor"), most="as-round-odd"),
    Planted("rounds_twice", "e5m2", ("rounds-twice-through-float16",), "inf", needs_float32=True),
    Planted(
        "low_bits_ignored",
        "e4m3fn",
        ("ignores-12-low-bits",),
        thread="triton-lang/triton#11753",
        needs_float32=True,
    ),
    Planted("carry_lost", "e4m3fn", ("carry-lost",), thread="intel/auto-round#2302"),
    Planted("saturates_early", "e4m3fn", ("saturates-early",)),
    Planted("no_limit", "e4m3fn", ("no-limit",)),
    Planted("nan_for_overflow", "e4m3fn", ("as-overflow-nan",), thread="jax-ml/ml_dtypes#400"),
    Planted(
        "infinity_for_overflow",
        "e5m2",
        ("as-overflow-inf",),
        "saturate",
        thread="stillwater-sc/universal#1302",
    ),
    Planted("infinity_is_nan", "e5m2", ("nan",), "inf"),
    Planted("infinity_is_zero", "e5m2", ("zero",), "inf", thread="stillwater-sc/universal#1302"),
    Planted("nan_is_infinity", "e5m2", ("infinity",), "inf"),
    Planted("nan_is_largest", "e4m3fn", ("maximum",)),
    Planted("nan_is_zero", "e4m3fnuz", ("zero",)),
    Planted("nan_sign_lost", "e4m3fn", ("nan-sign",)),
    Planted("minus_zero_lost", "e4m3fn", ("minus-zero-lost",)),
    Planted("sign_lost", "e2m1", ("magnitude-nearest-clamp",)),
    Planted("wrong_bias", "e4m3fn", ("another-bias",)),
    Planted("fn_as_fnuz", "e4m3fnuz", ("as-another-dtype",), thread="vllm-project/vllm#45302"),
    Planted(
        "e8m0_smallest_is_nan",
        "e8m0",
        ("nan",),
        thread="graphcore-research/gfloat#62",
        needs_float32=True,
    ),
    _decoder("from_subnormals_flushed", "e4m3fn", "subnormals-become-zero"),
    _decoder(
        "from_subnormals_as_normal", "e4m3fn", "subnormals-as-normal", "tenstorrent/tt-metal#51971"
    ),
    _decoder("from_nan_as_480", "e4m3fn", "specials-as-numbers", "ml-explore/mlx#4135"),
    _decoder("from_nan_as_infinity", "e5m2", "infinity"),
    _decoder("from_last_binade_as_infinity", "ue5m3", "infinity", "NVIDIA/cutlass#3602"),
    _decoder("from_nan_as_minus_zero", "e4m3fnuz", "zero", "triton-lang/triton#10745"),
    _decoder("from_fn_as_fnuz", "e4m3fnuz", "as-another-dtype", "vllm-project/vllm#33713"),
    _decoder("from_wrong_bias", "e5m2", "another-bias"),
    _decoder("from_e8m0_shifted", "e8m0", "moves-bits"),
)
