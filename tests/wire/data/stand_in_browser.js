// Stands in for a browser with WebNN: it fetches the page that it is started on, and runs its script
// in Node.js, over a `cast` by typed arrays. It has no float16, which WebNN requires, and no int64.
"use strict";

const TYPES = {
  float32: Float32Array, int32: Int32Array, uint32: Uint32Array, int8: Int8Array, uint8: Uint8Array,
};
const support = { dataTypes: Object.keys(TYPES), rankRange: { min: 0, max: 5 } };

class Tensor {
  constructor({ dataType, shape }) {
    this.values = new TYPES[dataType](shape.reduce((product, size) => product * size, 1));
  }

  destroy() {}
}

const context = {
  opSupportLimits: () => ({ cast: { input: support, output: support } }),
  createTensor: async (descriptor) => new Tensor(descriptor),
  writeTensor(tensor, bytes) {
    tensor.values.set(new tensor.values.constructor(bytes));
  },
  dispatch(graph, { input }, { output }) {
    output.values.set(input.values);
  },
  readTensor: async (tensor) => tensor.values.buffer,
};

globalThis.MLGraphBuilder = class {
  input(name, { dataType }) {
    if (!(dataType in TYPES)) throw new TypeError(`no ${dataType} here`);
  }

  cast() {}

  async build() {
    return { destroy() {} };
  }
};

async function main(address) {
  const page = await (await fetch(address)).text();
  const [, script] = page.match(/<script type="module">(.*)<\/script>/s);
  const navigator = { userAgent: "Stand-in Chrome/1.2.3" };
  if (!process.env.STAND_IN_LACKS_WEBNN) navigator.ml = { createContext: async () => context };
  const fetchFromPage = (name, options) => fetch(new URL(name, address), options);
  const Script = (async () => {}).constructor;
  await new Script("navigator", "fetch", script)(navigator, fetchFromPage);
}

main(process.argv.at(-1)).catch(() => process.exit(1)); // the program has ended
