"""AMD Quark's ``downcast_to_mxfp_torch`` and ``upcast_from_mxfp_torch``, written in torch."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.block_libraries import (
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
    "float4e2m1": "torch.uint8",
    "float8e4m3fn": "torch.float8_e4m3fn",
    "float8e5m2": "torch.float8_e5m2",
}
RULES: Mapping[str, str] = {"round-up": "ROUND_UP", "round-down": "ROUND_DOWN", "even": "EVEN"}


class Quark(BlockLibrary):
    """Quantizes and decodes MX blocks by the torch functions of ``quark.torch.kernel.mx``."""

    name = "quark"
    distribution = "amd-quark"
    extra = "quark"
    imports = (
        "import torch\n"
        "from quark.torch.kernel.mx.triton import DequantScaleRoundingMode\n"
        "from quark.torch.kernel.mx.triton import downcast_to_mxfp_torch, upcast_from_mxfp_torch\n"
    )

    def takes_ragged(self, asked: BlockCase) -> bool:
        """Return whether Quark pads rows whose last block is shorter.

        It does not for 4-bit codes, of which it takes an even number only.
        """
        return not asked.is_packed

    def lines(self, asked: BlockCase) -> list[str]:
        """Return the lines that call ``downcast_to_mxfp_torch`` or ``upcast_from_mxfp_torch``.

        Raises Unsupported for a format, an element or a rule that Quark lacks.
        """
        if asked.family != MX or asked.element not in ELEMENTS:
            raise self.declined(asked)
        element = ELEMENTS[asked.element]
        if asked.is_decoding:
            return [
                *torch_inputs(asked, element),
                f"y = upcast_from_mxfp_torch(data, scale, torch.{asked.number}, 1)",
                numbers_line(asked.number),
            ]
        if asked.rule not in RULES or (asked.rule == "even" and not asked.is_packed):
            raise self.declined(asked)
        mode = f"DequantScaleRoundingMode.{RULES[asked.rule]}"
        return [
            tensor_line("x", asked.number),
            "data, scale = downcast_to_mxfp_torch(",
            f"    x, {element}, 1, DEQUANT_SCALE_ROUNDING_MODE={mode})",
            *torch_results(asked),
        ]
