"""Reproduction scripts for jax."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.jax_roads import CALLS, DTYPES
from oracles.adapters.script_text import given, masked, printed
from oracles.adapters.stablehlo import program
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# jax {version}: {case}
import os

os.environ |= {{"JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu", "NPROC": "1"}}

import jax
import jax.numpy as jnp
import numpy as np

"""

WAYS: Mapping[str | None, str] = {
    None: "y = jax.lax.{call}(x, jnp.{target})\n",
    "jit": "y = jax.jit(lambda x: jax.lax.{call}(x, jnp.{target}))(x)\n",
    "folded": """\
row = jax.device_put(np.asarray(x)[None])  # a vector that counts from 0 would become an iota
y = np.asarray(jax.jit(lambda: jax.lax.{call}(row, jnp.{target}))())[0]
""",
    "stablehlo": '''\
program = """
{program}"""
(device, *_) = jax.local_devices()
(y,) = device.client.compile_and_load(program, [device]).execute([x])
''',
}


def reproduction(version: str, case: Case, bits: Bits, variant: str | None) -> str:
    """The script of one cast on one road."""
    source, target = DTYPES[case.source], DTYPES[case.target]
    way = WAYS[variant].format(
        call=CALLS["convert"],
        target=target,
        program=program("convert", case.source, case.target, bits.shape),
    )
    return (
        HEADER.format(version=version, case=case)
        + f"{given(case.source, bits)}\n"
        + f"x = jax.device_put(bits.view(jnp.{source}))\n"
        + way
        + f'answers = np.asarray(y).view("{format_named(case.target).storage}")'
        + f"{masked(case.target)}\n"
        + printed(case.source, case.target)
    )
