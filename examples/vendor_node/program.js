// A vendor's program for Castigate in one file of JavaScript: casts that round once, from exact
// values, over the protocol of docs/protocol.md. It needs Node.js and nothing else.
"use strict";

const { readSync, writeSync } = require("node:fs");

/** A float format by the widths of its fields; without an infinity, all ones is its only NaN. */
function float(exponent, mantissa, hasInfinity = true) {
  const signBit = 2 ** (exponent + mantissa);
  const bias = 2 ** (exponent - 1) - 1;
  const top = (2 ** exponent - 1) * 2 ** mantissa;
  return {
    bits: 1 + exponent + mantissa, isFloat: true, hasInfinity, mantissa, signBit,
    one: 2 ** mantissa, bias, lowest: 1 - bias,
    largest: hasInfinity ? top - 1 : signBit - 2,
    beyond: hasInfinity ? top : signBit - 1, // what a value becomes that is too large
    nan: hasInfinity ? top + 2 ** (mantissa - 1) : signBit - 1,
  };
}

const integer = (bits, isSigned) => ({ bits, isSigned, modulus: 2 ** bits });

// Every value of these dtypes is a value of float64, the numbers of JavaScript.
const DTYPES = {
  float64: float(11, 52), float32: float(8, 23), float16: float(5, 10), bfloat16: float(8, 7),
  float8e4m3fn: float(4, 3, false), float8e5m2: float(5, 2),
  int32: integer(32, true), int16: integer(16, true), int8: integer(8, true),
  uint32: integer(32, false), uint16: integer(16, false), uint8: integer(8, false),
  bool: { bits: 1, isBool: true },
};
const HELLO = {
  answer: "hello", protocol: 1, name: "vendor_node", version: process.versions.node,
  dtypes: Object.keys(DTYPES), operations: ["cast", "sweep", "bitcast"],
  claims: ["onnx-cast:25", "onnx-bitcast"], depends_on: ["mode"],
};

const bytesOf = (dtype) => Math.ceil(dtype.bits / 8);

/** The value of a code, and whether its sign bit is set: zeros and NaNs have signs too. */
function decode(dtype, code) {
  if (!dtype.isFloat) {
    const negative = Boolean(dtype.isSigned) && code >= dtype.modulus / 2;
    return { negative, value: negative ? code - dtype.modulus : code };
  }
  const negative = code >= dtype.signBit;
  const magnitude = negative ? code - dtype.signBit : code;
  const field = Math.floor(magnitude / dtype.one);
  const significand = (magnitude % dtype.one) + (field ? dtype.one : 0);
  let value = significand * 2 ** (Math.max(field, 1) - dtype.bias - dtype.mantissa);
  if (magnitude > dtype.largest) value = NaN;
  if (dtype.hasInfinity && magnitude === dtype.beyond) value = Infinity;
  return { negative, value: negative ? -value : value };
}

/** The code of a value: floats rounded to nearest, ties to even; integers cut off and wrapped. */
function encode(dtype, { negative, value }, saturates) {
  if (dtype.isBool) return value !== 0 ? 1 : 0;
  if (!dtype.isFloat) {
    const rest = Number.isFinite(value) ? Math.trunc(value) % dtype.modulus : 0;
    return rest < 0 ? rest + dtype.modulus : rest;
  }
  const sign = negative ? dtype.signBit : 0;
  if (Number.isNaN(value)) return sign + dtype.nan;
  const exponent = Math.max(exponentOf(value), dtype.lowest);
  const scaled = Math.abs(value) * 2 ** (dtype.mantissa - exponent); // exact: by a power of two
  // The leading bit of a normal number adds one to the exponent field, and so does a carry.
  const code = roundToEven(scaled) + (exponent - dtype.lowest) * dtype.one;
  if (code <= dtype.largest) return sign + code;
  return sign + (saturates ? dtype.largest : dtype.beyond);
}

const scratch = new DataView(new ArrayBuffer(8));

/** The exponent of the leading bit, if the value is a normal float64. */
function exponentOf(value) {
  scratch.setFloat64(0, value);
  return ((scratch.getUint16(0) >> 4) & 0x7ff) - 1023;
}

function roundToEven(value) {
  const below = Math.floor(value);
  const rest = value - below;
  return rest > 0.5 || (rest === 0.5 && below % 2 === 1) ? below + 1 : below;
}

// Codes of 64 bits are no exact numbers of JavaScript, so float64 is read and written as such.

function reader(dtype, payload) {
  const size = bytesOf(dtype);
  if (size < 8) return (index) => decode(dtype, payload.readUIntLE(index * size, size));
  return (index) => {
    return { negative: payload[8 * index + 7] >= 128, value: payload.readDoubleLE(8 * index) };
  };
}

function writer(dtype, output, saturates) {
  const size = bytesOf(dtype);
  const write = (index, code) => output.writeUIntLE(code, index * size, size);
  if (size < 8) return (index, datum) => write(index, encode(dtype, datum, saturates));
  return (index, { negative, value }) => {
    output.writeDoubleLE(value, 8 * index);
    if (Number.isNaN(value)) output[8 * index + 7] = negative ? 0xff : 0x7f;
  };
}

/** The header of the answer to a question, and its payload if it has one. */
function answerTo(question, payload) {
  if (question.ask === "hello") return [HELLO];
  if (question.ask === "bye") return [{ answer: "bye" }];
  const { source: from, target: to, mode } = question.case;
  const [source, target] = [DTYPES[from], DTYPES[to]];
  if (question.ask === "bitcast") {
    const width = ({ bits, isBool }) => (isBool ? 8 : bits); // In a bitcast a bool is a byte.
    const result = { answer: "values", shape: question.shape };
    if (width(source) === width(target)) return [result, payload];
    return [{ answer: "error", text: "a bitcast keeps the number of bits" }];
  }
  const unknown = Object.keys(mode).filter((name) => name !== "saturate").join(", ");
  if (unknown) return [{ answer: "unsupported", reason: `a cast takes no ${unknown}` }];
  const isSweep = question.ask === "sweep";
  const count = isSweep ? question.count : payload.length / bytesOf(source);
  const sweep = (index) => decode(source, question.first + index);
  const read = isSweep ? sweep : reader(source, payload);
  const output = Buffer.alloc(count * bytesOf(target));
  const write = writer(target, output, mode.saturate === "1");
  for (let index = 0; index < count; index += 1) write(index, read(index));
  return [{ answer: "values", shape: isSweep ? [count] : question.shape }, output];
}

/** The next bytes of stdin; null at its end. */
function read(size) {
  const content = Buffer.alloc(size);
  for (let at = 0; at < size; ) {
    const count = readSync(0, content, at, size - at);
    if (count === 0) return null;
    at += count;
  }
  return content;
}

for (let start; (start = read(16)) !== null; ) {
  const question = JSON.parse(read(start.readUInt32LE(4)));
  const payload = read(Number(start.readBigUInt64LE(8)));
  const [answer, values = Buffer.alloc(0)] = answerTo(question, payload);
  const header = Buffer.from(JSON.stringify({ ...answer, number: question.number }));
  start.writeUInt32LE(header.length, 4);
  start.writeBigUInt64LE(BigInt(values.length), 8);
  const frame = Buffer.concat([start, header, values]);
  for (let at = 0; at < frame.length; ) at += writeSync(1, frame, at);
  if (question.ask === "bye") break;
}
