// The codec of codec.h: the variables CAST and MUTANT choose its formats and its fault.
const CASTS = {
  "float16-float8e4m3fn": [5, 10, 4, 3],
  "float16-float8e5m2": [5, 10, 5, 2],
  "bfloat16-float32": [8, 7, 8, 23],
  "float64-float8e4m3fn": [11, 52, 4, 3],
};
const [SOURCE_EXPONENT, SOURCE_MANTISSA, TARGET_EXPONENT, TARGET_MANTISSA] = CASTS[process.env.CAST];
const MUTANT = Number(process.env.MUTANT ?? 0);
const [TRUNCATES, TIES_AWAY, FLUSHES, NAN_IS_ZERO, INFINITY_IS_NAN] = [1, 2, 3, 4, 5];
const [WRAPS, LOSES_MINUS_ZERO, ROUNDS_TWICE, SHIFTS_TOO_FAR, LARGEST_IS_LESS] = [6, 7, 8, 9, 10];
const CARRIES_OUT = 11;

const SOURCE_BITS = 1 + SOURCE_EXPONENT + SOURCE_MANTISSA;
const SIGN = 2 ** (TARGET_EXPONENT + TARGET_MANTISSA);
const E4M3FN = TARGET_EXPONENT === 4;
const INFINITE = E4M3FN ? 0x7e : ((1 << TARGET_EXPONENT) - 1) << TARGET_MANTISSA;
const LARGEST = E4M3FN ? 0x7e : INFINITE - 1;
const NOT_A_NUMBER = E4M3FN ? 0x7f : INFINITE + 1;
const FIELDS = 2 ** SOURCE_EXPONENT;
const BIASES = 2 ** (TARGET_EXPONENT - 1) - 2 ** (SOURCE_EXPONENT - 1);
const ONE = 2 ** SOURCE_MANTISSA;

/** Sign, exponent's field and significand's field, as Numbers. */
function fieldsOf(bits) {
  if (SOURCE_BITS < 64) return [bits >= ONE * FIELDS, Math.floor(bits / ONE) % FIELDS, bits % ONE];
  const [field, low] = [Number((bits >> 52n) & 0x7ffn), Number(bits & 0xfffffffffffffn)];
  return [bits >> 63n === 1n, field, low];
}

function rounded(significand, shift) {
  if (shift <= 0) return significand * 2 ** -shift;
  if (shift > SOURCE_MANTISSA + 2) return 0;
  const half = 2 ** (shift - 1), whole = Math.floor(significand / (2 * half));
  const rest = significand - whole * 2 * half;
  if (MUTANT === TRUNCATES) return whole;
  if (MUTANT === TIES_AWAY) return whole + (rest >= half ? 1 : 0);
  return whole + (rest > half || (rest === half && whole % 2) ? 1 : 0);
}

export function convert(bits) {
  const [negative, field, low] = fieldsOf(bits), sign = negative ? SIGN : 0;
  if (field === FIELDS - 1) {
    if (low) return sign + (MUTANT === NAN_IS_ZERO ? 0 : NOT_A_NUMBER);
    return sign + (MUTANT === INFINITY_IS_NAN ? NOT_A_NUMBER : INFINITE);
  }
  let significand = field ? ONE + low : low;
  const exponent = (field || 1) + BIASES - 1, binade = field && exponent > 0 ? exponent : 0;
  let shift = SOURCE_MANTISSA - TARGET_MANTISSA + binade - exponent;
  if (MUTANT === ROUNDS_TWICE && shift > 2) {
    significand = rounded(significand, shift - 2);
    shift = 2;
  }
  // A register as wide as the source takes its counts modulo its width.
  if (MUTANT === SHIFTS_TOO_FAR) shift = ((shift + 1) & (SOURCE_BITS - 1)) - 1;
  let code = binade * 2 ** TARGET_MANTISSA + rounded(significand, shift);
  if (MUTANT === FLUSHES && code < 2 ** TARGET_MANTISSA) code = 0;
  if (MUTANT === LARGEST_IS_LESS && code === LARGEST) return sign + code - 1;
  if (code > LARGEST) code = MUTANT === WRAPS ? code % SIGN : INFINITE;
  if (MUTANT === LOSES_MINUS_ZERO && !significand) return 0;
  return sign + code + (MUTANT === CARRIES_OUT ? 2 * sign : 0);
}
