"""Node.js: WebAssembly's conversions compiled by V8, in a node process that gets whole rows."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import numpy as np

from oracles.adapters.node_process import PIPES, NodeProcess, node_says
from oracles.adapters.refusals import require_variant
from oracles.adapters.script_text import bits_statement
from oracles.adapters.wasm_modules import (
    FULL,
    SWEPT_SIZE,
    Conversion,
    TrapError,
    answers_begin,
    bitcast_operation,
    cast_operation,
    copy_operation,
)
from oracles.protocol import Bits, Bound, Swept, Unsupported
from specs.cases import Case
from specs.formats import format_named

FLAGS: Mapping[str, tuple[str, ...]] = {
    "liftoff": ("--liftoff", "--no-wasm-tier-up"),
    "turbofan": ("--no-liftoff", "--no-wasm-tier-up"),
}
"""The flags that restrict V8 to one of its two compilers; without them it begins with Liftoff."""
VARIANTS: tuple[str, ...] = tuple(FLAGS)
PROFILES = (FULL,)

HEADER = struct.Struct("<6I")
"""The header of a request: six numbers.

These are the lengths in bytes of the module, the inputs and the answers, the address of the
answers, their count, and the first pattern. Without inputs, the module generates the patterns."""
REPLY = struct.Struct("<2I")
"""The header of a reply: whether the module trapped, and the length of the answers or reason."""

RUNNER = """\
const instances = new Map();
for (;;) {
  const header = new Uint32Array(fill(new Uint8Array(24)).buffer);
  const [code, inputs, answers, begin, count, first] = header;
  const bytes = fill(new Uint8Array(code));
  const key = Buffer.from(bytes).toString("latin1");
  if (!instances.has(key)) {
    instances.set(key, new WebAssembly.Instance(new WebAssembly.Module(bytes)).exports);
  }
  const { memory, run, sweep } = instances.get(key);
  const missing = begin + answers - memory.buffer.byteLength;
  if (missing > 0) memory.grow(Math.ceil(missing / 65536));
  let reply, trapped = 0;
  fill(new Uint8Array(memory.buffer, 0, inputs));
  try {
    inputs ? run(count, 0, begin) : sweep(count, first, begin);
    reply = new Uint8Array(memory.buffer, begin, answers);
  } catch (error) {
    trapped = 1;
    reply = Buffer.from(error.message);
  }
  send(new Uint8Array(new Uint32Array([trapped, reply.length]).buffer));
  send(reply);
}
"""

SCRIPT = """\
# node {version}: {case}
import subprocess
import numpy as np

{bits}
program = \"\"\"
const [code, ...inputs] = process.argv.slice(1);
const {{ f }} = new WebAssembly.Instance(new WebAssembly.Module(Buffer.from(code, "hex"))).exports;
const text = (answer) => "0x" + BigInt.asUintN({width}, BigInt(answer)).toString(16);
for (const given of inputs)
  try {{ console.log(given, "->", text(f({number}(given)))); }}
  catch (trap) {{ console.log(given, "->", trap.message); }}
\"\"\"
code = "{code}"
command = ["node", {flags}"-e", program, code]
subprocess.run(command + [*map(hex, bits)], check=True)
"""


class Node:
    """Casts and bitcasts by WebAssembly modules that loop over their memory, run by Node.js."""

    name = "node"
    claims: tuple[str, ...] = ("wasm-convert", "wasm-reinterpret")

    def __init__(self, variant: str | None = None) -> None:
        self.version = node_says("process.versions.node + '+v8.' + process.versions.v8")
        require_variant(self.name, variant, VARIANTS)
        self._flags = FLAGS[variant] if variant else ()
        self._process = ModuleProcess([*self._flags, "-e", PIPES + RUNNER])

    def cast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` cast by one instruction; raise TrapError if it traps on an input.

        Raises Unsupported as ``cast_operation`` does: V8 has the profile `full` alone.
        """
        return self._answer(cast_operation(case, PROFILES), bits)

    def bitcast(self, case: Case, bits: Bits) -> Bits:
        """Return ``bits`` reinterpreted by one instruction, or copied if none is needed.

        Dtypes of one WebAssembly type, such as int32 and uint32, need none. Raises Unsupported as
        ``bitcast_operation`` does.
        """
        return self._answer(bitcast_operation(case), bits)

    def bitcast_road(self, case: Case) -> str:
        """Return the dtypes and any instruction, as text; raise Unsupported as ``bitcast`` does."""
        return bitcast_operation(case).road

    def road(self, case: Case) -> str:
        """Return the pair and the instruction, as text; raise Unsupported as ``cast`` does."""
        return cast_operation(case, PROFILES).road

    def bind(self, case: Case, bits: Bits) -> Bound:
        """Return a call that sends ``bits`` to the process, and receives the answers.

        The calls reuse the memory of the answers. ``bind`` raises Unsupported as ``cast`` does, and
        the call raises TrapError.
        """
        operation = cast_operation(case, PROFILES)
        answers = np.empty(bits.size, format_named(case.target).storage)

        def call() -> Bits:
            self._process.convert(operation, answers, inputs=np.ascontiguousarray(bits))
            return answers

        return call

    def sweep(self, case: Case, lo: int, hi: int) -> Swept:
        """Return a call that converts consecutive patterns, which the module generates itself.

        So only answers are sent between the processes, into memory that calls of the same count
        reuse; ``lo`` and ``hi`` are not needed. Raises Unsupported as ``cast`` does, and for a
        source of other than 32 bits.
        """
        operation = cast_operation(case, PROFILES)
        if operation.source_size != SWEPT_SIZE:
            raise Unsupported(f"modules make no patterns of {case.source} themselves")
        answers = np.empty(0, format_named(case.target).storage)

        def call(first: int, count: int) -> Bits:
            nonlocal answers
            if answers.size != count:
                answers = np.empty(count, answers.dtype)
            self._process.convert(operation, answers, first=first)
            return answers

        return call

    def identity(self, dtype: str, bits: Bits) -> Bits:
        """Return ``bits`` after a loop in node has loaded and stored them.

        Raises Unsupported if WebAssembly has no values of the dtype.
        """
        return self._answer(copy_operation(dtype), bits)

    def reproduce(self, case: Case, bits: Bits) -> str:
        """Return a script of a case's instruction in node; raise Unsupported as ``cast`` does."""
        return self._script(cast_operation(case, PROFILES), case, bits.reshape(-1))

    def reproduce_bitcast(self, case: Case, bits: Bits) -> str:
        """Return a script that bitcasts patterns in node; raise Unsupported as ``bitcast`` does."""
        return self._script(bitcast_operation(case), case, bits.reshape(-1))

    def _answer(self, operation: Conversion, bits: Bits) -> Bits:
        answers = np.empty(bits.size, format_named(operation.target).storage)
        row = np.ascontiguousarray(bits).reshape(-1)
        self._process.convert(operation, answers, inputs=row)
        return answers.reshape(bits.shape)

    def _script(self, operation: Conversion, case: Case, bits: Bits) -> str:
        return SCRIPT.format(
            version=self.version,
            case=case,
            bits=bits_statement(case.source, bits),
            width=format_named(case.target).bits,
            number="BigInt" if operation.integer_type == "i64" else "Number",
            code=operation.function.hex(),
            flags="".join(f'"{flag}", ' for flag in self._flags),
        )


class ModuleProcess(NodeProcess):
    """A process of Node.js that runs modules on request; a lock admits one thread at a time."""

    def convert(
        self, operation: Conversion, answers: Bits, inputs: Bits | None = None, first: int = 0
    ) -> None:
        """Write the answers to ``inputs``, or to the patterns from ``first`` on, into ``answers``.

        If ``inputs`` is None, the module generates as many patterns as ``answers`` has elements.
        Raises TrapError if the module traps, and RuntimeError if node has ended.
        """
        if not answers.size:
            return
        code = operation.binary
        begin = answers_begin(operation, 0 if inputs is None else answers.size)
        size = 0 if inputs is None else inputs.nbytes
        header = HEADER.pack(len(code), size, answers.nbytes, begin, answers.size, first)
        with self.lock:
            self.send(memoryview(header + code))
            if inputs is not None:
                self.send(inputs.view(np.uint8).data)
            trapped, length = REPLY.unpack(self.received(REPLY.size))
            if trapped:
                raise TrapError(self.received(length).decode())
            self.receive(answers.view(np.uint8).data)
