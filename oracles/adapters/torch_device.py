"""torch on an accelerator: whether there is one, and casts of inputs that are made on it."""

from __future__ import annotations

from typing import Any

from oracles.protocol import Unsupported

SIGNED = {1: "int8", 2: "int16", 4: "int32", 8: "int64"}
"""torch's signed integers by their bytes: it computes with few of the unsigned ones."""
HALF = 1 << 31


def require_device(torch: Any, device: str) -> None:
    """Raise Unsupported, with what to do about it, if torch cannot use a device of this kind."""
    if not torch.get_device_module(device).is_available():
        raise Unsupported(
            f"torch {torch.__version__} sees no {device.upper()} device; ask `torch`, or install a "
            "torch that is built for the device (https://pytorch.org/get-started)"
        )


class DeviceSweep:
    """Casts consecutive patterns of a 32-bit source on a device, block by block.

    The tensors are reused: the answers of a call last until the next one.
    """

    def __init__(self, torch: Any, device: str, source: Any, target: Any, most: int) -> None:
        if source.itemsize != 4 or target.itemsize not in SIGNED:
            raise Unsupported(f"{source} to {target} is not swept on a device")
        self._torch = torch
        self._device = torch.get_device_module(device)
        self._offsets = torch.arange(most, dtype=torch.int32, device=device)
        self._patterns = torch.empty_like(self._offsets)
        self._x = self._patterns.view(source)
        self._y = torch.empty(most, dtype=target, device=device)
        self._answers = self._y.view(getattr(torch, SIGNED[target.itemsize]))

    def __call__(self, first: int, count: int) -> Any:
        """Return the answers to ``count`` patterns from ``first`` on, as signed integers."""
        # Beyond the largest signed integer the sum wraps around, as the patterns do.
        start = first - 2 * HALF if first >= HALF else first
        self._torch.add(self._offsets[:count], start, out=self._patterns[:count])
        self._y[:count].copy_(self._x[:count])
        # Wait here, so that errors of the device are raised and its time counts as the backend's.
        self._device.synchronize()
        return self._answers[:count]
