"""Scripts that ask paddle for one cast without this project."""

from __future__ import annotations

from oracles.adapters.paddle_tensors import CARRIERS, DTYPES, way_out
from oracles.adapters.script import given, printed
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# paddle {version}: {case}
import numpy as np
import paddle

paddle.set_device("cpu")
"""

EAGER = """\
y = x.astype(paddle.{target})
"""

STATIC = """\
spec = paddle.static.InputSpec([-1], paddle.{source}, stop_gradient=True)
cast = paddle.jit.to_static(
    paddle.cast, input_spec=[spec, paddle.{target}], full_graph=True, backend={backend!r}
)
y = cast(x, paddle.{target})
"""


def reproduction(
    version: str, case: Case, bits: Bits, *, static: bool, backend: str | None = None
) -> str:
    """The script for a case, by ``astype`` or by a static program."""
    source, target = DTYPES[case.source], DTYPES[case.target]
    cast = (STATIC if static else EAGER).format(source=source, target=target, backend=backend)
    return (
        HEADER.format(version=version, case=case)
        + f"{given(case.source, bits)}\n"
        + f"x = {_way_in(case.source)}\n"
        + cast
        + f"answers = {_way_out(case.target)}\n"
        + printed(case.source, case.target)
    )


def _way_in(dtype: str) -> str:
    carried = CARRIERS[format_named(dtype).storage]
    x = f"paddle.to_tensor(bits.view(np.{carried}))"
    return x if carried == dtype else f"{x}.view(paddle.{DTYPES[dtype]})"


def _way_out(dtype: str) -> str:
    carried = way_out(dtype)
    y = "y" if carried == dtype else f"y.view(paddle.{carried})"
    return f'np.from_dlpack({y}).view("{format_named(dtype).storage}")'
