"""mlx's ``quantize`` and ``dequantize`` in the modes mxfp4, mxfp8 and nvfp4, on the CPU."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.block_libraries import (
    MX,
    NVFP4,
    BlockCase,
    BlockLibrary,
)

MODES: Mapping[tuple[str, str], tuple[str, str]] = {
    (MX, "float4e2m1"): ("mxfp4", "round-up"),
    (MX, "float8e4m3fn"): ("mxfp8", "round-up"),
    (NVFP4, "float4e2m1"): ("nvfp4", "nearest-even"),
}
"""The mode and the only rule of its scales, by format and element."""
STORAGE: Mapping[str, str] = {"float32": "uint32", "bfloat16": "uint16", "float16": "uint16"}
PACK = "packed = blocks[:, ::2] | blocks[:, 1::2] << 4"
UNPACK = "y = np.stack([y & 15, y >> 4], axis=-1)"
EVEN_NUMBER = (
    "blocks = bits.reshape(-1, 16)  # it refuses an odd number of blocks",
    "blocks = np.pad(blocks, [(0, len(blocks) % 2), (0, 0)])",
)
EVEN_SCALES = "scales = np.pad(scale_bits.reshape(-1, 1), [(0, scale_bits.size % 2), (0, 0)])"
WITHOUT_ADDED = ("y, scale = y.ravel()[: bits.size], scale.ravel()[: bits.size // 16]",)
"""Drops the block of zeros that ``EVEN_NUMBER`` may add to NVFP4 blocks."""
FROM_LARGEST = "total = mx.array(global_bits.view(np.float32) * np.float32(448 * 6))"
"""mlx takes a global scale as the largest magnitude of the tensor from which it is computed."""


class MlxBlocks(BlockLibrary):
    """Quantizes and decodes blocks by ``quantize`` and ``dequantize`` of ``mlx.core``."""

    name = "mlx"
    distribution = "mlx"
    imports = "import mlx.core as mx\n"

    def lines(self, asked: BlockCase) -> list[str]:
        """Return the lines that call ``quantize`` or ``dequantize`` in a mode of mlx.

        Raises Unsupported if mlx has no such mode or rule.
        """
        mode, rule = MODES.get((asked.family, asked.element), ("", ""))
        if not mode or asked.rule not in ("", rule):
            raise self.declined(asked)
        lines = [FROM_LARGEST] if asked.has_global else []
        more = ", global_scale=total" if asked.has_global else ""
        lines += EVEN_NUMBER if asked.family == NVFP4 else ["blocks = bits"]
        if asked.is_decoding:
            return [*lines, *self._decoding(asked, f'mode="{mode}"{more}')]
        return [
            *lines,
            f"x = mx.array(blocks).view(mx.{asked.number})",
            f'data, scale = mx.quantize(x, mode="{mode}"{more})',
            "y, scale = np.array(data).view(np.uint8), np.array(scale)",
            *([UNPACK] if asked.is_packed else []),
            *(WITHOUT_ADDED if asked.family == NVFP4 else ()),
        ]

    def _decoding(self, asked: BlockCase, mode: str) -> list[str]:
        is_filled = asked.family == NVFP4
        return [
            PACK if asked.is_packed else "packed = blocks",
            EVEN_SCALES if is_filled else "scales = scale_bits",
            "data, scale = mx.array(packed.view(np.uint32)), mx.array(scales)",
            f"y = mx.dequantize(data, scale, {mode}, dtype=mx.{asked.number})",
            f'assert y.dtype == mx.{asked.number}, f"the result is {{y.dtype}}"',
            f"y = np.array(y.view(mx.{STORAGE[asked.number]}))",
            *(["y = y.ravel()[: bits.size]"] if is_filled else []),
        ]
