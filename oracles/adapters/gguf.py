"""The Python package gguf, of llama.cpp: MXFP4 blocks by its ``quants``, decoding of NVFP4."""

from __future__ import annotations

from oracles.adapters.block_libraries import MX, NVFP4, BlockCase, BlockLibrary

VARIANTS: tuple[str, ...] = ()

QUANTIZE = (
    "blocks = gguf.quants.quantize(x, gguf.GGMLQuantizationType.MXFP4).reshape(-1, 17)",
    "scale, packed = blocks[:, 0], blocks[:, 1:]",
    "y = np.concatenate([packed & 15, packed >> 4], axis=-1)",
)
"""A block is a scale and 16 bytes; the lower halves of these are the first 16 codes."""
DECODE_MX = (
    "codes = bits.reshape(-1, 32)",
    "blocks = np.hstack([scale_bits.reshape(-1, 1), codes[:, :16] | codes[:, 16:] << 4])",
    "y = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.MXFP4).view(np.uint32)",
)
DECODE_NVFP4 = (
    "codes, scales = bits.reshape(-1, 16), scale_bits.reshape(-1, 1)",
    "empty = -len(codes) % 4  # four blocks are stored together",
    "packed = np.pad(codes[:, :8] | codes[:, 8:] << 4, [(0, empty), (0, 0)]).reshape(-1, 32)",
    "blocks = np.hstack([np.pad(scales, [(0, empty), (0, 0)]).reshape(-1, 4), packed])",
    "y = gguf.quants.dequantize(blocks, gguf.GGMLQuantizationType.NVFP4).view(np.uint32)",
    "y = y.ravel()[: bits.size]",
)


class Gguf(BlockLibrary):
    """Quantizes and decodes MXFP4 blocks by ``gguf.quants``, and decodes NVFP4 blocks."""

    name = "gguf"
    distribution = "gguf"
    extra = "gguf"
    imports = "import gguf\n"

    def lines(self, asked: BlockCase) -> list[str]:
        """Return the lines that quantize to MXFP4 by the rule ``floor``, or that decode to float32.

        Raises Unsupported for every other case, for bfloat16 numbers, and for a global scale.
        """
        if asked.element != "float4e2m1" or asked.number == "bfloat16" or asked.has_global:
            raise self.declined(asked)
        if not asked.is_decoding:
            if (asked.family, asked.rule) != (MX, "floor"):
                raise self.declined(asked)
            return [f"x = bits.view(np.{asked.number})", *QUANTIZE]
        if asked.number != "float32":
            raise self.declined(asked)
        return [*(DECODE_NVFP4 if asked.family == NVFP4 else DECODE_MX)]
