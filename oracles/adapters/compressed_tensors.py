"""compressed-tensors, of vLLM: its quantization parameters and compressors of MX and NVFP4."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.block_libraries import (
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

SCHEMES: Mapping[tuple[str, str], tuple[str, str, str]] = {
    (MX, "float4e2m1"): ("MXFP4", "mxfp4.MXFP4PackedCompressor", "even"),
    (MX, "float6e2m3"): ("MXFP6A16", "mxfp6.MXFP6PackedCompressor", "even"),
    (MX, "float8e4m3fn"): ("MXFP8", "mxfp8.MXFP8QuantizationCompressor", "even"),
    (NVFP4, "float4e2m1"): ("NVFP4", "nvfp4.NVFP4PackedCompressor", "nearest-even"),
}
"""The preset, the compressor and the only rule of its scales, by format and element."""

UNPACK_SIX = (
    'stream = np.unpackbits(y, axis=1, bitorder="little").reshape(len(bits), -1, 6)',
    'y = np.packbits(stream, axis=2, bitorder="little")',
)
PACK_SIX = (
    'stream = np.unpackbits(bits[..., None], axis=2, count=6, bitorder="little")',
    'bits = np.packbits(stream.reshape(len(bits), -1), axis=1, bitorder="little")',
)
"""Four codes of six bits are in three bytes."""
RECIPROCAL = "total = 1 / torch.tensor(global_bits.view(np.float32))  # it multiplies by it"


class CompressedTensors(BlockLibrary):
    """Quantizes and decodes blocks by the compressors of ``compressed_tensors``."""

    name = "compressed_tensors"
    distribution = "compressed-tensors"
    extra = "compressed-tensors"
    imports = (
        "import torch\n"
        "from compressed_tensors.compressors import mxfp4, mxfp6, mxfp8, nvfp4\n"
        "from compressed_tensors.quantization import preset_name_to_scheme, utils\n"
    )

    def lines(self, asked: BlockCase) -> list[str]:
        """Return the lines that compute scales and compress a tensor, or that decompress it.

        Raises Unsupported for a format, an element, a rule or a decoded dtype that the package
        lacks.
        """
        scheme, compressor, rule = SCHEMES.get((asked.family, asked.element), ("", "", ""))
        if not scheme or asked.rule not in ("", rule):
            raise self.declined(asked)
        bits = int(asked.element[5])
        kept = "weight" if bits == 8 else "weight_packed"
        lines = [f'scheme = preset_name_to_scheme("{scheme}", ["Linear"])']
        total = ""
        if asked.family == NVFP4:
            total = ', "weight_global_scale": total'
            lines += [RECIPROCAL] if asked.has_global else ["total = torch.ones(1)"]
        if asked.is_decoding:
            if asked.number != "bfloat16":
                raise self.declined(asked)
            return [
                *lines,
                *(PACK_SIX if bits == 6 else ()),
                *torch_inputs(asked, "torch.float8_e4m3fn" if bits == 8 else "torch.uint8"),
                f'kept = {{"{kept}": data, "weight_scale": scale{total}}}',
                f'y = {compressor}.decompress(kept, scheme)["weight"]',
                numbers_line(asked.number),
            ]
        given = ", total" if asked.family == NVFP4 else ""
        return [
            *lines,
            tensor_line("x", asked.number),
            f"scale, _ = utils.compute_dynamic_scales_and_zp(x, scheme.weights, None{given})",
            f'given = {{"weight": x, "weight_scale": scale{total}}}',
            f"made = {compressor}.compress(given, scheme)",
            *torch_results(asked, (f'made["{kept}"]', 'made["weight_scale"]')),
            *(UNPACK_SIX if bits == 6 else ()),
        ]
