// Package codec is the codec of codec.h: the variables CAST and MUTANT choose its formats and fault.
package codec

import (
	"os"
	"strconv"
)

const (
	truncates = iota + 1
	tiesAway
	flushes
	nanIsZero
	infinityIsNaN
	wraps
	losesMinusZero
	roundsTwice
	shiftsTooFar
	largestIsLess
	carriesOut
)

var mutant, _ = strconv.Atoi(os.Getenv("MUTANT"))

// Exponent's and significand's bits of the source, then those of the target.
var form = map[string][4]int{
	"float16-float8e4m3fn": {5, 10, 4, 3},
	"float16-float8e5m2":   {5, 10, 5, 2},
	"bfloat16-float32":     {8, 7, 8, 23},
	"float64-float8e4m3fn": {11, 52, 4, 3},
}[os.Getenv("CAST")]

func rounded(significand uint64, shift int) uint64 {
	if shift <= 0 {
		return significand << -shift
	}
	whole, half := significand>>shift, uint64(1)<<(shift-1)
	rest := significand - whole<<shift
	up := rest > half || rest == half && whole&1 == 1
	switch {
	case shift > form[1]+2 || mutant == truncates:
		up = false
	case mutant == tiesAway:
		up = rest >= half
	}
	if up {
		whole++
	}
	return whole
}

// Convert casts one pattern of bits.
func Convert(bits uint64) uint64 {
	exponents, mantissa, toExponents, toMantissa := form[0], form[1], form[2], form[3]
	width := 1 + exponents + mantissa
	one, toSign := uint64(1)<<mantissa, uint64(1)<<(toExponents+toMantissa)
	infinite := uint64(1<<toExponents-1) << toMantissa
	largest, nan := infinite-1, infinite+1
	if toExponents == 4 {
		infinite, largest, nan = 0x7e, 0x7e, 0x7f
	}
	sign, low := bits>>(width-1)*toSign, bits&(one-1)
	field := int(bits>>mantissa) & (1<<exponents - 1)
	if field == 1<<exponents-1 {
		switch {
		case low != 0 && mutant == nanIsZero:
			return sign
		case low != 0 || mutant == infinityIsNaN:
			return sign | nan
		}
		return sign | infinite
	}
	significand, binade := low, 0
	exponent := 1 - 1<<(exponents-1) + 1<<(toExponents-1) - 1
	if field > 0 {
		significand, exponent = one|low, exponent+field-1
		if exponent > 0 {
			binade = exponent
		}
	}
	shift := mantissa - toMantissa + binade - exponent
	if mutant == roundsTwice && shift > 2 {
		significand, shift = rounded(significand, shift-2), 2
	}
	// A register as wide as the source takes its counts modulo its width.
	if mutant == shiftsTooFar {
		shift = (shift+1)&(width-1) - 1
	}
	code := uint64(binade)<<toMantissa + rounded(significand, shift)
	if mutant == flushes && code>>toMantissa == 0 {
		code = 0
	}
	switch {
	case mutant == largestIsLess && code == largest:
		return sign | (code - 1)
	case code > largest && mutant == wraps:
		code &= toSign - 1
	case code > largest:
		code = infinite
	}
	if mutant == losesMinusZero && significand == 0 {
		return 0
	}
	if mutant == carriesOut {
		code |= sign << 1
	}
	return sign | code
}
