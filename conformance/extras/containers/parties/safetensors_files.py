"""The road of the safetensors package, which has a module for each framework."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from conformance.extras.containers.parties.party import ContainerRoad
from oracles.adapters.refusals import load
from oracles.protocol import Bits, NotInstalled, Tensor, Unsupported
from specs.cases import Case

EXTRA = "containers"


def safetensors_road(
    framework: str,
    make: Callable[[Case, Bits], Any],
    read: Callable[[Any], Tensor],
    make_script: str,
    read_script: str = "",
) -> ContainerRoad:
    """Return how the module ``safetensors.<framework>`` writes and reads a tensor.

    ``make`` returns the framework's tensor of a case and patterns, and ``read`` the patterns of
    such a tensor. ``make_script`` binds ``x`` to the framework's tensor, and ``read_script``
    converts the tensor ``y`` to a numpy array. Writing and reading raise Unsupported if the module
    is not installed.
    """
    module = f"safetensors.{framework}"
    return ContainerRoad(
        partial(_save, module, make),
        partial(_load, module, read),
        f'{make_script}import {module}\ncontent = {module}.save({{{{"x": x}}}})\n',
        f'import {module}\ny = {module}.load(content)["x"]\n{read_script}',
    )


def _save(module: str, make: Callable[[Case, Bits], Any], case: Case, bits: Bits) -> bytes:
    content: bytes = _module(module).save({"x": make(case, bits)})
    return content


def _load(module: str, read: Callable[[Any], Tensor], case: Case, content: bytes) -> Tensor:
    return read(_module(module).load(content)["x"])


def _module(name: str) -> Any:
    try:
        return load(name, EXTRA)
    except NotInstalled as error:
        raise Unsupported(str(error)) from None
