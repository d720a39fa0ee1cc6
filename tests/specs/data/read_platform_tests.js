// Prints the casts that files of the Web Platform Tests demand of WebNN, as JSON lines: the names
// of the files are the arguments. A value is a text, so that -0, NaN and infinities survive; where
// a test names bits, `is_bits` says so. The files run against stubs that record what they ask for.
"use strict";

const { readFileSync } = require("node:fs");
const { basename } = require("node:path");
const vm = require("node:vm");

const texts = (values) => Array.from(values, (value) => Object.is(value, -0) ? "-0" : `${value}`);

function recorded(file) {
  const graphs = [];
  const record = (...everything) => {
    graphs.push(...everything.flat().filter((one) => one && one.graph));
  };
  const nothing = () => {};
  const context = vm.createContext({
    navigator: { ml: {} }, webnn_conformance_test: record,
    promise_setup: nothing, promise_test: nothing, getRequiredDataTypesAndRanks: nothing,
    buildAndExecuteGraph: nothing, getZeroULPTolerance: nothing,
  });
  vm.runInContext(readFileSync(file, "utf8"), context, { filename: file });
  const stored = vm.runInContext(
    "typeof storageCases === 'undefined' ? [] : storageCases", context,
  );
  return { graphs, stored: stored.filter(({ op }) => op === "cast") };
}

function fromGraph({ name, graph: { inputs, operators, expectedOutputs } }) {
  const [[input, { data, descriptor }]] = Object.entries(inputs);
  const steps = operators.map(({ arguments: [operand, target], outputs }) => {
    const expected = expectedOutputs[outputs];
    return {
      from: operand.input, to: outputs, target: target.type,
      expected: expected ? texts(expected.data) : null,
    };
  });
  const { dataType: source, shape } = descriptor;
  return { name, is_bits: false, input, source, shape, values: texts(data), steps };
}

function fromStorage({ name, inputType, outputType, data, expected }) {
  const Codes = inputType === "float16" ? Uint16Array : Uint32Array;
  const values = texts(new Codes(data.buffer));
  const steps = [{ from: "input", to: "output", target: outputType, expected: texts(expected) }];
  const shape = [values.length];
  return { name, is_bits: true, input: "input", source: inputType, shape, values, steps };
}

for (const file of process.argv.slice(2)) {
  const { graphs, stored } = recorded(file);
  for (const test of [...graphs.map(fromGraph), ...stored.map(fromStorage)]) {
    console.log(JSON.stringify({ file: basename(file), ...test }));
  }
}
