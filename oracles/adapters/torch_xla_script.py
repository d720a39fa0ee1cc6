"""Reproduction scripts for torch_xla."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.script_text import given, printed
from oracles.adapters.torch_tensors import DTYPES
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# torch_xla {version}: {case}
import os

os.environ |= {environment}

import numpy as np
import torch
import torch_xla
from torch_xla.core.xla_op_registry import register

"""

READ_AS = """\
# Patterns go as integers: on their own way NaNs of float16 turn quiet.
read_as = register("bitcast", lambda x, to_type: x.bitcast(to_type))
"""

CAST = """\
torch_xla.sync()
y = x.to(torch.{target})
torch_xla.sync()
"""


def reproduction(
    version: str, case: Case, bits: Bits, environment: Mapping[str, str], types: Mapping[str, str]
) -> str:
    """The script of one case; ``types`` are XLA's names of the dtypes."""
    target = DTYPES[case.target]
    return (
        HEADER.format(version=version, case=case, environment=dict(environment)).replace("'", '"')
        + READ_AS
        + f"{given(case.source, bits)}\n"
        + _way_in(case.source, types)
        + CAST.format(target=target)
        + f"answers = {_way_out(case.target, types)}\n"
        + printed(case.source, case.target)
    )


def _way_in(dtype: str, types: Mapping[str, str]) -> str:
    entry = format_named(dtype)
    if entry.is_integral:
        return f'x = torch.from_numpy(bits).view(torch.{DTYPES[dtype]}).to("xla")\n'
    if entry.kind == "float":
        return _read_as(f"bits.view(np.int{entry.bits})", types[dtype])
    part = entry.entry.part
    parts = f"bits.view(np.int{format_named(part).bits}).reshape(-1, 2)"
    return _read_as(parts, types[part]) + "x = torch.view_as_complex(x)\n"


def _read_as(bits: str, type_name: str) -> str:
    return (
        f'carried = torch.from_numpy({bits}).to("xla")\n'
        f'x = read_as(carried, to_type="{type_name}")\n'
    )


def _way_out(dtype: str, types: Mapping[str, str]) -> str:
    entry = format_named(dtype)
    if entry.is_integral:
        return f"y.cpu().numpy().view(np.{entry.storage})"
    if entry.kind == "float":
        return f'read_as(y, to_type="s{entry.bits}").cpu().numpy().view(np.{entry.storage})'
    storage = '"V16"' if entry.storage == "V16" else f"np.{entry.storage}"
    part = format_named(entry.entry.part).bits
    parts = f'read_as(torch.view_as_real(y), to_type="s{part}")'
    return f"{parts}.cpu().numpy().reshape(-1).view({storage})"
