"""torch's devices by name: which there are, where a tensor lies, and where a cast is computed."""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from oracles.adapters.refusals import first_line
from oracles.adapters.road_words import parse_road
from oracles.protocol import Unsupported

DEVICE_ROADS: Mapping[str, str] = {
    "DEVICE": "a device of torch, such as mps, xpu or cuda:1",
    "DEVICE,import=MODULE": "a device that a module registers",
    "DEVICE,to=DEVICE": "a cast within a copy to another device, such as cpu,to=cuda",
}

NO_VALUES = "meta"
"""The device whose tensors have shapes, but no values."""

NO_FALLBACK: Mapping[str, str] = {
    "PYTORCH_ENABLE_MPS_FALLBACK": "0",
    "PYTORCH_ENABLE_XPU_FALLBACK": "0",
    # The profiler, which finds other fallbacks, otherwise writes to stderr.
    "KINETO_LOG_LEVEL": "99",
}
"""The environment variables by which torch, when imported, lets no operation leave the device."""


@dataclass(frozen=True)
class DeviceRoad:
    """The device of the tensors that are cast, and that of the results.

    ``module`` registers the device when it is imported; empty if none need be. ``version`` is the
    module's own.
    """

    device: str
    to: str
    module: str = ""
    version: str = ""

    @property
    def is_copy(self) -> bool:
        """Whether a cast moves its tensor to another device."""
        return self.to != self.device

    @property
    def stays_on_device(self) -> bool:
        """Whether a cast must be computed by a device other than the CPU."""
        return not self.is_copy and self.device.partition(":")[0] != "cpu"


def forbid_fallback() -> None:
    """Set the environment so that torch, once imported, lets no CPU answer for a device."""
    os.environ.update(NO_FALLBACK)


def device_road(torch: Any, variant: str, variants: tuple[str, ...]) -> DeviceRoad:
    """Return the road that a variant's words name; raise Unsupported if there is none.

    ``variants`` are torch's other variants, which the message lists.
    """
    road = parse_road("torch", variant, ("import", "to"))
    if len(road.words) != 1:
        raise Unsupported(f"torch:{variant} must begin with one device, such as torch:cuda:1")
    [device], module = road.words, road.options.get("import", "")
    version = _imported(module) if module else ""
    found = DeviceRoad(device, road.options.get("to", device), module, version)
    for name in (found.device, found.to):
        _require_known(torch, name, variants)
    return found


def _imported(module: str) -> str:
    """Import a module and return its version, if it has one; Unsupported if there is no module."""
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise Unsupported(f"import={module}: {error}; PYTHONPATH must have its folder") from None
    return str(getattr(imported, "__version__", ""))


def _require_known(torch: Any, name: str, variants: tuple[str, ...]) -> None:
    here = f"devices here are {', '.join(devices_here(torch))}"
    try:
        device = torch.device(name)
    except RuntimeError:
        others = f"its variants are {', '.join(variants)}, its {here}"
        raise Unsupported(f"torch has no variant `{name}`; {others}") from None
    if device.type == NO_VALUES:
        raise Unsupported(f"torch's device `{name}` holds no values; {here}")
    if not _is_here(torch, name):
        wanted = "another one needs a torch built for it, or import=MODULE"
        raise Unsupported(f"torch {torch.__version__} sees no device `{name}`; {here}; {wanted}")


def devices_here(torch: Any) -> list[str]:
    """Return the names of the devices on which torch can make a tensor."""
    return [name for name in _kinds(torch) if name != NO_VALUES and _is_here(torch, name)]


def _kinds(torch: Any) -> Iterator[str]:
    """Yield torch's kinds of devices; the private one under the name that it was given."""
    for member in torch._C._autograd.DeviceType.__members__:
        is_private = member == "PrivateUse1"
        yield torch._C._get_privateuse1_backend_name() if is_private else member.lower()


def _is_here(torch: Any, name: str) -> bool:
    with warnings.catch_warnings(), suppress(Exception):
        warnings.simplefilter("ignore")  # some kinds are deprecated
        torch.empty(1, device=name)
        return True
    return False


def require_device(torch: Any, device: str) -> None:
    """Raise Unsupported unless a device of torch's own is available."""
    if not torch.get_device_module(device).is_available():
        raise Unsupported(
            f"torch {torch.__version__} sees no {device.upper()} device; ask `torch`, or install a "
            "torch that is built for the device (https://pytorch.org/get-started)"
        )


def require_place(torch: Any, tensor: Any, device: str) -> None:
    """Raise Unsupported unless a tensor lies on a device; without an index, on one of its kind."""
    wanted, found = torch.device(device), tensor.device
    if found.type != wanted.type or wanted.index not in (None, found.index):
        raise Unsupported(f"the tensor lies on {found}, not on {device}")


class FallbackWatch:
    """Finds casts that a device leaves to the CPU, by what torch's profiler sees of one call."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._profiler: Any = importlib.import_module("torch.profiler")

    def call(self, make: Callable[[], Any]) -> Any:
        """Return what ``make`` returns; raise Unsupported if the CPU computed a part of it."""
        cpu = self._profiler.ProfilerActivity.CPU
        with self._profiler.profile(activities=[cpu], record_shapes=True) as seen:
            made = make()
        for event in _events(seen.profiler.kineto_results.experimental_event_tree()):
            if _is_on_cpu(event):
                raise Unsupported(f"the device left this to the CPU, which ran {event.name}")
        return made


def _events(tree: list[Any]) -> Iterator[Any]:
    for event in tree:
        yield event
        yield from _events(event.children)


def _is_on_cpu(event: Any) -> bool:
    """Return whether an operation is a device's fallback, or converts a tensor of the CPU."""
    if event.name == "aten::_to_cpu":
        return True  # only torch's own fallback calls it
    if event.name != "aten::copy_":
        return False
    target, source = event.extra_fields.inputs[:2]
    return bool(
        {target.device.type, source.device.type} == {"cpu"} and target.dtype != source.dtype
    )


def first_sentence(error: NotImplementedError) -> str:
    """Return what a device lacks: of the page that torch prints, the first sentence."""
    return first_line(error).partition(". ")[0]
