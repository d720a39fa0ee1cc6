// Stands in for a browser with WebNN: it fetches the page that it is started on, and runs its
// script in Node.js, over typed arrays. It has no float16, which WebNN requires, and no int64.
"use strict";

const TYPES = {
  float32: Float32Array, int32: Int32Array, uint32: Uint32Array, int8: Int8Array, uint8: Uint8Array,
};
const ENDS = {
  int32: [-(2 ** 31), 2 ** 31 - 1], uint32: [0, 2 ** 32 - 1], int8: [-128, 127], uint8: [0, 255],
};
const operand = { dataTypes: Object.keys(TYPES), rankRange: { min: 0, max: 5 } };
const linear = { input: operand, scale: operand, zeroPoint: operand, output: operand };
const limits = {
  cast: { input: operand, output: operand }, quantizeLinear: linear, dequantizeLinear: linear,
};

class Tensor {
  constructor({ dataType, shape }, bytes) {
    if (!(dataType in TYPES)) throw new TypeError(`no ${dataType} here`);
    this.dataType = dataType;
    this.shape = shape;
    const count = shape.reduce((product, size) => product * size, 1);
    this.values = bytes ? new TYPES[dataType](bytes) : new TYPES[dataType](count);
  }

  destroy() {}
}

const context = {
  opSupportLimits: () => limits,
  createTensor: async (descriptor) => new Tensor(descriptor),
  writeTensor(tensor, bytes) {
    tensor.values.set(new tensor.values.constructor(bytes));
  },
  dispatch(graph, inputs, { output }) {
    output.values.set(graph.compute(inputs));
  },
  readTensor: async (tensor) => tensor.values.buffer,
};

/** Rounds to whole numbers, ties to even, unless the environment wants a fault. */
function rounded(value) {
  if (process.env.STAND_IN_ROUNDS_AWAY) return Math.sign(value) * Math.round(Math.abs(value));
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 !== 0) ? below + 1 : below;
}

/** The value of a smaller tensor for an element of a larger one, whose axes it cuts into blocks. */
function spread(tensor, shape, index) {
  let [rest, place, stride] = [index, 0, 1];
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    const at = rest % shape[axis];
    rest = Math.floor(rest / shape[axis]);
    place += stride * Math.floor((at * tensor.shape[axis]) / shape[axis]);
    stride *= tensor.shape[axis];
  }
  return tensor.values[place];
}

function linearly(formula) {
  return (input, scale, zeroPoint) => (inputs) => {
    const [x, factor, zero] = [input, scale, zeroPoint].map((each) => each(inputs));
    const of = (tensor, index) => spread(tensor, x.shape, index);
    return Array.from(x.values, (value, index) =>
      formula(value, of(factor, index), of(zero, index), zero));
  };
}

globalThis.MLGraphBuilder = class {
  quantizeLinear = linearly((x, scale, zero, { dataType }) => {
    const [low, high] = ENDS[dataType];
    return Math.min(Math.max(rounded(Math.fround(x / scale)) + zero, low), high);
  });

  dequantizeLinear = linearly((x, scale, zero) => (x - zero) * scale);

  input(name, { dataType }) {
    if (!(dataType in TYPES)) throw new TypeError(`no ${dataType} here`);
    return (inputs) => inputs[name];
  }

  constant(descriptor, bytes) {
    const tensor = new Tensor(descriptor, bytes);
    return () => tensor;
  }

  cast(input) {
    return (inputs) => input(inputs).values;
  }

  async build({ output }) {
    return { compute: output, destroy() {} };
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
