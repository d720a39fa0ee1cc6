// Runs ONNX models of one input x and one output on request: PACKAGE PROVIDER. node_process.py has fill and send.
const { createRequire } = require("node:module");

console.log = console.info = console.error; // the standard output is the wire
const [name, provider] = process.argv.slice(1);
const ort = createRequire(process.cwd() + "/")(name);
ort.env.logLevel = "fatal";
if (ort.env.wasm) ort.env.wasm.numThreads = 1;
const OPTIONS = { executionProviders: [provider], graphOptimizationLevel: "disabled" };
const MOST_SESSIONS = 256;
const sessions = new Map();
const ARRAYS = {
  float16: globalThis.Float16Array ?? Uint16Array, float32: Float32Array, float64: Float64Array,
  int8: Int8Array, int16: Int16Array, int32: Int32Array, int64: BigInt64Array,
  uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, uint64: BigUint64Array,
  bool: Uint8Array,
};

function receive() {
  const [size] = new Uint32Array(fill(new Uint8Array(4)).buffer);
  const head = JSON.parse(Buffer.from(fill(new Uint8Array(size))).toString());
  return { ...head, model: fill(new Uint8Array(head.model)), bytes: fill(new Uint8Array(head.bytes)) };
}

function reply(head, bytes = new Uint8Array(0)) {
  const text = Buffer.from(JSON.stringify({ ...head, bytes: bytes.length }));
  send(new Uint8Array(new Uint32Array([text.length]).buffer));
  send(text);
  send(bytes);
}

async function sessionOf(model) {
  const key = Buffer.from(model).toString("latin1");
  if (!sessions.has(key)) {
    sessions.set(key, await ort.InferenceSession.create(model, { ...OPTIONS, logSeverityLevel: 4 }));
    const [[oldest, first]] = sessions;
    if (sessions.size > MOST_SESSIONS && sessions.delete(oldest)) await first.release();
  }
  return sessions.get(key);
}

async function answer({ model, type, dims, texts, bytes }) {
  let session;
  try {
    session = await sessionOf(model);
  } catch (error) {
    return reply({ refused: error.message });
  }
  try {
    const data = texts ?? new ARRAYS[type](bytes.buffer);
    const [y] = Object.values(await session.run({ x: new ort.Tensor(type, data, dims) }));
    if (y.type === "string") return reply({ dims: y.dims, texts: y.data });
    return reply({ dims: y.dims }, new Uint8Array(y.data.buffer, y.data.byteOffset, y.data.byteLength));
  } catch (error) {
    return reply({ failed: error.message });
  }
}

(async () => {
  for (;;) await answer(receive());
})();
