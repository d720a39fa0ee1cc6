"""The dtypes of numbers and elements, and the rules, that each library of block formats offers."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.block_libraries import NUMBERS

E4, E5, E2M3, E3M2, E2M1 = (
    "float8e4m3fn", "float8e5m2", "float6e2m3", "float6e3m2", "float4e2m1",
)  # fmt: skip
MX_ELEMENTS = (E4, E5, E2M3, E3M2, E2M1, "int8")
MX_RULES = (
    "floor", "ceil", "round-up", "round-down", "even", "nearest", "nearest-log", "round-up-7.25",
)  # fmt: skip
NVFP4_RULES = ("round-up", "nearest-even", "nearest-away")
Offer = tuple[str, str, str]
"""A dtype of numbers, one of elements, and a rule, which is empty for decoding."""


def offers(numbers: str, elements: str, rules: str) -> set[Offer]:
    return {
        (number, element, rule)
        for number in numbers.split()
        for element in elements.split()
        for rule in rules.split(" ")
    }


ALL_NUMBERS = " ".join(NUMBERS)
OF_TORCHAO = "float32 bfloat16"
MX_OFFERS: Mapping[str, set[Offer]] = {
    "torchao": offers(OF_TORCHAO, f"{E4} {E5} {E2M3} {E3M2} {E2M1}", " floor ceil round-up even"),
    "gguf": offers("float32", E2M1, " floor") | offers("float16", E2M1, "floor"),
    "compressed_tensors": (
        offers(ALL_NUMBERS, f"{E2M1} {E2M3} {E4}", "even")
        | offers("bfloat16", f"{E2M1} {E2M3} {E4}", "")
    ),
    "modelopt": offers(ALL_NUMBERS, f"{E2M1} {E4}", " round-up"),
    "quark": (
        offers(ALL_NUMBERS, f"{E2M1} {E4} {E5}", " round-up round-down")
        | offers(ALL_NUMBERS, E2M1, "even")
    ),
    "auto_round": (
        offers(ALL_NUMBERS, " ".join(MX_ELEMENTS), "floor round-up")
        | offers(ALL_NUMBERS, E2M1, "round-up-7.25")
    ),
    "mlx": offers(ALL_NUMBERS, f"{E2M1} {E4}", " round-up"),
}
NVFP4_OFFERS: Mapping[str, set[Offer]] = {
    "torchao": offers(OF_TORCHAO, E2M1, " nearest-even"),
    "gguf": offers("float32", E2M1, ""),
    "compressed_tensors": (
        offers(ALL_NUMBERS, E2M1, "nearest-even") | offers("bfloat16", E2M1, "")
    ),
    "modelopt": offers(ALL_NUMBERS, E2M1, " nearest-even"),
    "quark": set(),
    "auto_round": offers(ALL_NUMBERS, E2M1, "nearest-even"),
    "mlx": offers(ALL_NUMBERS, E2M1, " nearest-even"),
}
