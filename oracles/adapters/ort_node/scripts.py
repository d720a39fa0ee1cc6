"""Scripts that run a model in node, with nothing but the packages of npm, onnx and numpy."""

from __future__ import annotations

import numpy as np

from oracles.adapters.script_text import bits_statement, print_statement
from oracles.protocol import Bits
from specs.cases import Case
from specs.formats import format_named

PROGRAM = '''\
program = """
const ort = require("{package}");
const [model, input] = process.argv.slice(1).map((each) => Buffer.from(each, "hex"));
const options = {{ executionProviders: ["{provider}"], graphOptimizationLevel: "disabled" }};
(async () => {{
  const session = await ort.InferenceSession.create(new Uint8Array(model), options);
  const data = {data};
  const x = new ort.Tensor("{source}", data, {shape});
  const [y] = Object.values(await session.run({{ x }}));
  {print}
  process.exit(0);
}})();
"""
'''
RUN = """\
command = ["node", "-e", program, model.SerializeToString().hex(), {content}.hex()]
printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
"""
ARRAYS = {
    "float16": "(globalThis.Float16Array ?? Uint16Array)",
    "int64": "BigInt64Array",
    "uint64": "BigUint64Array",
    "bool": "Uint8Array",
}
"""By dtype, the array of JavaScript if its name is not that of the dtype."""


def script(case: Case, bits: Bits, model: str, package: str, version: str, provider: str) -> str:
    """Return a script that casts bits by a model in node and prints the answers.

    ``model`` has the statements that bind ``model``.
    """
    source, target = format_named(case.source), format_named(case.target)
    if source.kind == "text":
        data, content = "JSON.parse(input.toString())", "json.dumps(bits.ravel().tolist()).encode()"
    else:
        array = ARRAYS.get(case.source, f"{case.source.capitalize()}Array")
        data = f"new {array}(new Uint8Array(input).buffer)"
        content = "bits.tobytes()"
    if target.kind == "text":
        shown = "console.log(JSON.stringify(y.data));"
        answers = "answers = np.array(json.loads(printed), object)\n"
    else:
        shown = 'console.log(Buffer.from(y.data.buffer, y.data.byteOffset).toString("hex"));'
        answers = f"answers = np.frombuffer(bytes.fromhex(printed), np.{target.storage})\n"
    if bits.ndim != 1:
        answers += "answers = answers.reshape(bits.shape)\n"
    program = PROGRAM.format(
        package=package,
        provider=provider,
        source=case.source,
        shape=list(bits.shape),
        data=data,
        print=shown,
    )
    return (
        f"# {package} {version}: {case}\nimport json\nimport subprocess\n\n"
        "import numpy as np\nimport onnx.parser\n\n"
        f"{bits_statement(case.source, bits)}\n"
        + model
        + program
        + RUN.format(content=content)
        + answers
        + print_statement(case.source, case.target, np.asarray(bits))
    )
