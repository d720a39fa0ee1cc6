"""Intel's AutoRound: its block data types, which return numbers and the exponents of scales.

It returns no codes. Each number is a code times its scale, and multiplying or dividing by a power
of two is exact. So the adapter divides the numbers by the scales, and ml_dtypes converts the
quotients to codes. For NVFP4 the quotients are rounded, but near enough to the codes' values.
"""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.block_libraries import (
    GLOBAL_TENSOR,
    NVFP4,
    BlockCase,
    BlockLibrary,
    tensor_line,
)

VARIANTS: tuple[str, ...] = ()

ELEMENTS: Mapping[str, tuple[str, str]] = {
    "float8e4m3fn": ("mx_fp8e4m3", "ml_dtypes.float8_e4m3fn"),
    "float8e5m2": ("mx_fp8e5m2", "ml_dtypes.float8_e5m2"),
    "float6e2m3": ("mx_fp6e2m3", "ml_dtypes.float6_e2m3fn"),
    "float6e3m2": ("mx_fp6e3m2", "ml_dtypes.float6_e3m2fn"),
    "float4e2m1": ("mx_fp4e2m1", "ml_dtypes.float4_e2m1fn"),
    "int8": ("mx_int8", "np.int8"),
}
"""AutoRound's data type and the dtype of codes, by element."""
RULES: Mapping[str, str] = {"floor": "", "round-up": "_rceil"}
"""The suffix of a data type's name that selects a rule, by rule."""
EXPONENT = "exponent = exponent.double().numpy()"
DIVISOR = "divisor = np.repeat({divisor}, {size}).reshape(len(bits), -1)[:, : bits.shape[1]]"
QUOTIENT = "numbers.double().numpy() / divisor"


class AutoRound(BlockLibrary):
    """Quantizes blocks by the functions that AutoRound registers for its data types.

    It decodes no blocks.
    """

    name = "auto_round"
    distribution = "auto-round"
    extra = "auto-round"
    imports = (
        "import ml_dtypes\nimport torch\nfrom auto_round.data_type import QUANT_FUNC_WITH_DTYPE\n"
    )

    def takes_ragged(self, asked: BlockCase) -> bool:
        """Return True: AutoRound pads rows whose last block is shorter."""
        return True

    def lines(self, asked: BlockCase) -> list[str]:
        """Return the lines that call a data type's function and find the codes.

        Raises Unsupported if AutoRound has no such data type or rule, or the case decodes.
        """
        if asked.is_decoding:
            raise self.declined(asked)
        x = tensor_line("x", asked.number)
        if asked.family == NVFP4:
            if (asked.element, asked.rule) != ("float4e2m1", "nearest-even"):
                raise self.declined(asked)
            total = f"{GLOBAL_TENSOR}[0]" if asked.has_global else "total = torch.tensor(1.0)"
            return [
                x,
                total,
                'numbers, scale, _ = QUANT_FUNC_WITH_DTYPE["nv_fp4"](x, global_scale=1 / total)',
                DIVISOR.format(divisor="(scale.double() * total).numpy()", size=16),
                "scale = scale.to(torch.float8_e4m3fn).view(torch.uint8).numpy()",
                f"y = ({QUOTIENT}).astype(ml_dtypes.float4_e2m1fn).view(np.uint8) & 15",
            ]
        if asked.element not in ELEMENTS:
            raise self.declined(asked)
        data_type, dtype = ELEMENTS[asked.element]
        if (asked.rule, asked.element) == ("round-up-7.25", "float4e2m1"):
            function = "mx_fp4_rceil_v2"
        elif asked.rule in RULES:
            function = data_type + RULES[asked.rule]
        else:
            raise self.declined(asked)
        named = f'group_size=32, data_type="{data_type}"'
        codes = f"{QUOTIENT} * 64" if asked.element == "int8" else QUOTIENT
        mask = {"float4e2m1": " & 15", "float6e2m3": " & 63", "float6e3m2": " & 63"}
        return [
            x,
            f'numbers, exponent, _ = QUANT_FUNC_WITH_DTYPE["{function}"](x, {named})',
            EXPONENT,
            DIVISOR.format(divisor="2**exponent", size=32),
            "scale = np.where(np.isnan(exponent), 255, exponent + 127).astype(np.uint8)",
            f"y = ({codes}).astype({dtype}).view(np.uint8){mask.get(asked.element, '')}",
        ]
