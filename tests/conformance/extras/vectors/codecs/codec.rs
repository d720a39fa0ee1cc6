//! The codec of codec.h: the variables CAST and MUTANT choose its formats and its fault.
use std::env::var;

const TRUNCATES: u32 = 1;
const TIES_AWAY: u32 = 2;
const FLUSHES: u32 = 3;
const NAN_IS_ZERO: u32 = 4;
const INFINITY_IS_NAN: u32 = 5;
const WRAPS: u32 = 6;
const LOSES_MINUS_ZERO: u32 = 7;
const ROUNDS_TWICE: u32 = 8;
const SHIFTS_TOO_FAR: u32 = 9;
const LARGEST_IS_LESS: u32 = 10;
const CARRIES_OUT: u32 = 11;

fn rounded(significand: u64, shift: i32, mantissa: i32, mutant: u32) -> u64 {
    if shift <= 0 {
        return significand << -shift;
    }
    if shift > mantissa + 2 {
        return 0;
    }
    let (whole, half) = (significand >> shift, 1 << (shift - 1));
    let rest = significand - (whole << shift);
    let up = match mutant {
        TRUNCATES => false,
        TIES_AWAY => rest >= half,
        _ => rest > half || (rest == half && whole & 1 == 1),
    };
    whole + u64::from(up)
}

pub fn convert(bits: u64) -> u64 {
    let (exponents, mantissa, to_exponents, to_mantissa) = match &var("CAST").unwrap()[..] {
        "float16-float8e4m3fn" => (5, 10, 4, 3),
        "float16-float8e5m2" => (5, 10, 5, 2),
        "bfloat16-float32" => (8, 7, 8, 23),
        "float64-float8e4m3fn" => (11, 52, 4, 3),
        cast => panic!("no cast {}", cast),
    };
    let mutant: u32 = var("MUTANT").map_or(0, |number| number.parse().unwrap());
    let width = 1 + exponents + mantissa;
    let (one, to_sign) = (1u64 << mantissa, 1u64 << (to_exponents + to_mantissa));
    let infinite = match to_exponents {
        4 => 0x7e,
        _ => ((1 << to_exponents) - 1) << to_mantissa,
    };
    let (largest, nan) = if to_exponents == 4 { (0x7e, 0x7f) } else { (infinite - 1, infinite + 1) };
    let sign = if bits >> (width - 1) == 1 { to_sign } else { 0 };
    let low = bits & (one - 1);
    let field = (bits >> mantissa) as i32 & ((1 << exponents) - 1);
    if field == (1 << exponents) - 1 {
        return sign
            | match (low != 0, mutant) {
                (true, NAN_IS_ZERO) => 0,
                (true, _) | (false, INFINITY_IS_NAN) => nan,
                (false, _) => infinite,
            };
    }
    let mut significand = if field > 0 { one | low } else { low };
    let exponent = field.max(1) - (1 << (exponents - 1)) + (1 << (to_exponents - 1)) - 1;
    let binade = if field > 0 { exponent.max(0) } else { 0 };
    let mut shift = mantissa - to_mantissa + binade - exponent;
    if mutant == ROUNDS_TWICE && shift > 2 {
        significand = rounded(significand, shift - 2, mantissa, mutant);
        shift = 2;
    }
    // A register as wide as the source takes its counts modulo its width.
    if mutant == SHIFTS_TOO_FAR {
        shift = ((shift + 1) & (width - 1)) - 1;
    }
    let mut code = ((binade as u64) << to_mantissa) + rounded(significand, shift, mantissa, mutant);
    if mutant == FLUSHES && code >> to_mantissa == 0 {
        code = 0;
    }
    if mutant == LARGEST_IS_LESS && code == largest {
        return sign | (code - 1);
    }
    if code > largest {
        code = if mutant == WRAPS { code & (to_sign - 1) } else { infinite };
    }
    if mutant == LOSES_MINUS_ZERO && significand == 0 {
        return 0;
    }
    if mutant == CARRIES_OUT {
        code |= sign << 1;
    }
    sign | code
}
