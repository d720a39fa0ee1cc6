"""torchao's prototype of block formats: ``to_mx`` with its four rules, and ``nvfp4_quantize``."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.block_libraries import (
    GLOBAL_TENSOR,
    MX,
    BlockCase,
    BlockLibrary,
    numbers_line,
    tensor_line,
    torch_inputs,
    torch_results,
)

VARIANTS: tuple[str, ...] = ()

ELEMENTS: Mapping[str, str] = {
    "float8e4m3fn": "torch.float8_e4m3fn",
    "float8e5m2": "torch.float8_e5m2",
    "float6e2m3": '"fp6_e2m3"',
    "float6e3m2": '"fp6_e3m2"',
    "float4e2m1": "torch.float4_e2m1fn_x2",
}
RULES: Mapping[str, str] = {"floor": "FLOOR", "ceil": "CEIL", "round-up": "RCEIL", "even": "EVEN"}
NVFP4_RULE = "nearest-even"


class Torchao(BlockLibrary):
    """Quantizes and decodes blocks by ``torchao.prototype.mx_formats``."""

    name = "torchao"
    distribution = "torchao"
    extra = "torchao"
    imports = (
        "import torch\n"
        "from torchao.prototype.mx_formats.mx_tensor import ScaleCalculationMode, to_dtype, to_mx\n"
        "from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, nvfp4_quantize\n"
    )

    def lines(self, asked: BlockCase) -> list[str]:
        """Return the lines that quantize by ``to_mx`` or ``nvfp4_quantize``, or that decode.

        Raises Unsupported for an element, a rule or a dtype of numbers that torchao lacks.
        """
        offered = ELEMENTS if asked.family == MX else {"float4e2m1"}
        if asked.element not in offered or asked.number == "float16":
            raise self.declined(asked)
        if asked.is_decoding:
            return self._decoding(asked)
        lines = [tensor_line("x", asked.number)]
        if asked.family == MX:
            if asked.rule not in RULES:
                raise self.declined(asked)
            mode = f"ScaleCalculationMode.{RULES[asked.rule]}"
            lines.append(f"scale, data = to_mx(x, {ELEMENTS[asked.element]}, 32, {mode})")
        else:
            if asked.rule != NVFP4_RULE:
                raise self.declined(asked)
            lines += [GLOBAL_TENSOR] if asked.has_global else []
            more = ", total.reshape(())" if asked.has_global else ""
            lines.append(f"scale, data = nvfp4_quantize(x, 16{more})")
        return [*lines, *torch_results(asked)]

    def _decoding(self, asked: BlockCase) -> list[str]:
        element, number = ELEMENTS[asked.element], f"torch.{asked.number}"
        lines = torch_inputs(
            asked, element if asked.element.startswith("float8") else "torch.uint8"
        )
        if asked.family == MX:
            lines.append(f"y = to_dtype(data, scale, {element}, 32, {number})")
        else:
            lines += [GLOBAL_TENSOR] if asked.has_global else []
            total = "total.reshape(())" if asked.has_global else "None"
            lines.append(f"y = NVFP4Tensor(data, scale, 16, {number}, {total}).dequantize()")
        return [*lines, numbers_line(asked.number)]
