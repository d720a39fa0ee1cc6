"""Reproduction scripts for openvino."""

from __future__ import annotations

from collections.abc import Mapping

from oracles.adapters.ort_script import PACKED, UNPACKED
from oracles.adapters.script_text import given, printed
from oracles.bit_packing import is_packed
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

HEADER = """\
# openvino {version}: {case}
import numpy as np
import openvino as ov
from openvino import opset15

"""

TENSORS = """\

{memory} = np.empty({size}, np.{storage})
x = ov.Tensor({content}, [len(bits)], ov.Type.{source})
y = ov.Tensor({memory}, [len(bits)], ov.Type.{target})
"""

OPERAND = "operand = opset15.parameter([{known}], ov.Type.{source})\n"

CONSTANT = "operand = ov.op.Constant(x, shared_memory=False)\n"

CONVERT = "convert = opset15.convert(operand, ov.Type.{target})\n"

EVALUATED = """\
if not convert.evaluate([y], [x]):
    raise SystemExit("openvino's reference does not evaluate this conversion")
"""

COMPILED = """\
model = ov.Model([convert], {parameters}, "cast")
settings = {settings}
request = ov.Core().compile_model(model, "CPU", settings).create_infer_request()
{fed}request.set_output_tensor(y)
request.start_async()
request.wait()
"""


def reproduction(
    version: str,
    case: Case,
    bits: Bits,
    *,
    types: tuple[str, str],
    settings: Mapping[str, str | int] | None,
    dynamic: bool,
    folded: bool,
) -> str:
    """The script of one case: compiled for the CPU plugin where there are settings for it."""
    source, target = format_named(case.source), format_named(case.target)
    script = HEADER.format(version=version, case=case) + given(case.source, bits) + "\n"
    script += PACKED.format(bits=source.bits) if is_packed(source) else ""
    packed = is_packed(target)
    script += TENSORS.format(
        memory="raw" if packed else "answers",
        size=f"-(-len(bits) * {target.bits} // 8)" if packed else "len(bits)",
        storage=target.storage,
        content="packed" if is_packed(source) else "bits",
        source=types[0],
        target=types[1],
    )
    operand = CONSTANT if folded else OPERAND
    script += operand.format(known="-1" if dynamic else "len(bits)", source=types[0])
    script += CONVERT.format(target=types[1])
    if settings is None:
        script += EVALUATED
    else:
        script += COMPILED.format(
            settings=repr(dict(settings)).replace("'", '"'),
            parameters="[]" if folded else "[operand]",
            fed="" if folded else "request.set_input_tensor(x)\n",
        )
    script += UNPACKED.format(bits=target.bits) if packed else ""
    return script + printed(case.source, case.target)
