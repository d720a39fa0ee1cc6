"""Scripts that ask paddle for one cast without this project."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.paddle_tensors import CARRIERS, DTYPES, way_out
from oracles.adapters.script_text import given, printed
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


EXECUTED = """\
fed = x._copy_to(paddle.CPUPlace(), True)
paddle.enable_static()
program = paddle.static.Program()
with paddle.static.program_guard(program):
    y = paddle.cast(paddle.static.data("x", [-1], paddle.{source}), paddle.{target})
(answer,) = paddle.static.Executor(paddle.CPUPlace()).run(
    program, feed={{"x": fed.get_tensor()}}, fetch_list=[y], return_numpy=False
)
paddle.disable_static()
y = paddle.Tensor(answer)
"""

CALLS: Mapping[str | None, str] = {None: EAGER, "static": STATIC, "executor": EXECUTED}


def reproduction(
    version: str, case: Case, bits: Bits, *, road: str | None, backend: str | None = None
) -> str:
    """The script for a case, by ``astype`` or by a static program."""
    source, target = DTYPES[case.source], DTYPES[case.target]
    cast = CALLS[road].format(source=source, target=target, backend=backend)
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
