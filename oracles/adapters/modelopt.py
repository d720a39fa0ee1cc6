"""NVIDIA's Model Optimizer: the tensors MXFP4, MXFP8 and NVFP4 of ``modelopt.torch``."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.block_libraries import (
    GLOBAL_TENSOR,
    MX,
    NVFP4,
    BlockCase,
    BlockLibrary,
    numbers_line,
    tensor_line,
    torch_inputs,
    torch_results,
)

VARIANTS: tuple[str, ...] = ()

TENSORS: Mapping[tuple[str, str], tuple[str, str]] = {
    (MX, "float4e2m1"): ("MXFP4QTensor", "round-up"),
    (MX, "float8e4m3fn"): ("MXFP8QTensor", "round-up"),
    (NVFP4, "float4e2m1"): ("NVFP4QTensor", "nearest-even"),
}
"""The class and the only rule of its scales, by format and element."""
QUANTIZE: Mapping[str, str] = {
    "MXFP4QTensor": "quantize(x, 32)",
    "MXFP8QTensor": "quantize(x)",
    "NVFP4QTensor": "quantize(x, 16, weights_scaling_factor_2=total)[:2]",
}
DEQUANTIZE: Mapping[str, str] = {
    "MXFP4QTensor": ", block_sizes={-1: 32}",
    "MXFP8QTensor": "",
    "NVFP4QTensor": ", double_scale=total, block_sizes={-1: 16}",
}
"""The arguments of each class's ``dequantize`` after ``scale``."""


class Modelopt(BlockLibrary):
    """Quantizes and decodes blocks by the classes of ``modelopt.torch.quantization.qtensor``."""

    name = "modelopt"
    distribution = "nvidia-modelopt"
    extra = "modelopt"
    imports = (
        "import torch\n"
        "from modelopt.torch.quantization.qtensor import MXFP4QTensor, MXFP8QTensor, NVFP4QTensor\n"
    )

    def takes_ragged(self, asked: BlockCase) -> bool:
        """Return whether the class of a case pads rows whose last block is shorter.

        The class of MXFP8 does, and that of NVFP4 when it quantizes.
        """
        return not asked.is_packed or (asked.family == NVFP4 and not asked.is_decoding)

    def lines(self, asked: BlockCase) -> list[str]:
        """Return the lines that call the ``quantize`` or ``dequantize`` of the case's class.

        Raises Unsupported if modelopt has no such class or rule.
        """
        tensor, rule = TENSORS.get((asked.family, asked.element), ("", ""))
        if not tensor or asked.rule not in ("", rule):
            raise self.declined(asked)
        lines = []
        if asked.family == NVFP4:
            # Without a global scale modelopt computes one from the whole tensor.
            lines.append(GLOBAL_TENSOR if asked.has_global else "total = torch.ones(1)")
        if asked.is_decoding:
            return [*lines, *self._decoding(asked, tensor)]
        lines.append(tensor_line("x", asked.number))
        lines.append(f"made, scale = {tensor}.{QUANTIZE[tensor]}")
        return [*lines, "data = made._quantized_data", *torch_results(asked)]

    def _decoding(self, asked: BlockCase, tensor: str) -> list[str]:
        data = "torch.uint8" if asked.is_packed else "torch.float8_e4m3fn"
        return [
            *torch_inputs(asked, data),
            f"made = {tensor}(torch.Size(bits.shape), torch.{asked.number}, data)",
            f"y = made.dequantize(scale=scale{DEQUANTIZE[tensor]})",
            numbers_line(asked.number),
        ]
