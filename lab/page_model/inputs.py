"""Draws elements: at random, special ones, and those beside codes, ties and ends."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from random import Random

from lab.page_model import numbers
from lab.page_model.numbers import Number


def pattern_near(dtype: str, number: Number) -> int:
    """Return a pattern of a dtype that is nearest to a number, limited to the dtype's ends."""
    if numbers.is_integer(dtype):
        low, high = numbers.ends(dtype)
        whole = min(max(numbers.whole_even(number), low), high)
        return numbers.integer_pattern(dtype, whole)
    layout = numbers.LAYOUTS[dtype]
    code = min(numbers.nearest_code(layout, number), layout.largest)
    return code | (layout.sign if number.negative else 0)


@cache
def bits_of(dtype: str) -> int:
    if numbers.is_integer(dtype):
        return int(dtype.rpartition("int")[2])
    return 8 if dtype == "float8e8m0" else numbers.LAYOUTS[dtype].sign.bit_length()


@cache
def specials(dtype: str) -> list[int]:
    """Return codes at the edges of a dtype: zeros, ends, subnormals, infinities and NaNs."""
    bits = bits_of(dtype)
    if numbers.is_integer(dtype):
        top = 1 << (bits - 1)
        return [0, 1, (1 << bits) - 1, top, top - 1]
    if dtype == "float8e8m0":
        return [0, 1, 126, 127, 128, 0xFE, 0xFF]
    layout = numbers.LAYOUTS[dtype]
    magnitudes = [0, 1, 2, 3, (1 << layout.mantissa) - 1, 1 << layout.mantissa, layout.largest]
    magnitudes += range(layout.largest - 2, min(layout.largest + 5, layout.sign))
    magnitudes += [*layout.nans, layout.sign - 1]
    return [code | sign for code in magnitudes for sign in (0, layout.sign)]


@dataclass
class Draw:
    """Draws elements of a case, as codes: an input of the source, a scale and a zero point."""

    source: str
    target: str
    scale: str
    random: Random
    is_dequantizing: bool = False

    def scales(self) -> int:
        """Draw the code of a scale, mostly positive and moderate."""
        pick = self.random.random()
        if pick < 0.12:
            return self.random.choice(specials(self.scale))
        if pick < 0.22:
            return self.random.getrandbits(bits_of(self.scale))
        if self.scale == "int32":
            return self.random.choice([1, 2, 3, 5, 7, 10, 49, 255, self.random.getrandbits(20) + 1])
        if self.scale == "float8e8m0":
            return self.random.randrange(100, 150)
        top = self.random.choice([1, 3, 7, self.random.randrange(1, 1 << 24)])
        bottom = self.random.choice([1, 3, 10, 49, 255, 1 << self.random.randrange(24)])
        found = pattern_near(self.scale, numbers.finite(top, bottom))
        return found or 1

    def zeros(self) -> int:
        codes = self.source if self.is_dequantizing else self.target
        pick = self.random.random()
        if pick < 0.45:
            return 0
        if pick < 0.55:
            return self.random.choice(specials(codes))
        if not numbers.is_integer(codes) and pick < 0.8:
            return 0
        if numbers.is_integer(codes) and bits_of(codes) > 16 and pick < 0.8:
            return self.random.randrange(300)
        return self.random.getrandbits(bits_of(codes))

    def number(self, scale_code: int, zero_code: int) -> int:
        """Draw an input of a quantization: random, special, or beside a tie, a code or an end."""
        pick = self.random.random()
        if pick < 0.12:
            return self.random.choice(specials(self.source))
        if pick < 0.3:
            return self.random.getrandbits(bits_of(self.source))
        scale = numbers.decode(self.scale, scale_code)
        if scale.kind != "finite":
            scale = numbers.finite(1)
        wanted = numbers.product(self.step(zero_code), scale)
        code = pattern_near(self.source, wanted) + self.random.choice([-2, -1, 0, 0, 0, 1, 2])
        return code & ((1 << bits_of(self.source)) - 1)

    def beside(self) -> int:
        """Draw an input of a cast: at random, special, or beside a code, a tie or an end."""
        pick = self.random.random()
        if pick < 0.15:
            return self.random.choice(specials(self.source))
        if pick < 0.4:
            return self.random.getrandbits(bits_of(self.source))
        wanted = self.step(0)
        if pick < 0.5:
            wanted = numbers.finite(self.random.choice([65504, 65519, 65520, 65536, 1 << 24]))
        code = pattern_near(self.source, wanted) + self.random.choice([-2, -1, 0, 1, 2])
        return code & ((1 << bits_of(self.source)) - 1)

    def step(self, zero_code: int) -> Number:
        """Draw a quotient that gives a code of the target exactly, or lies midway between two."""
        if not numbers.is_integer(self.target):
            layout = numbers.LAYOUTS[self.target]
            code = self.random.randrange(layout.largest + 3)
            field_ = code >> layout.mantissa
            units = code & ((1 << layout.mantissa) - 1)
            units += (1 << layout.mantissa) if field_ else 0
            power = max(field_, 1) - 1 + layout.lowest - layout.mantissa - 1
            half = self.random.randrange(2)
            return numbers.power(2 * units + half, power, negative=self.random.random() < 0.5)
        low, high = numbers.ends(self.target)
        zero = numbers.signed(numbers.decode(self.target, zero_code))
        whole = self.random.randint(low - 2, high + 2)
        if self.random.random() < 0.3:
            whole = self.random.choice([low, high]) + self.random.randint(-2, 2)
        elif self.random.random() < 0.4:
            whole = zero + self.random.randint(-20, 20)
        return numbers.finite(2 * (whole - zero) + self.random.randrange(2), 2)

    def code(self) -> int:
        """Draw an input of a dequantization, at random or special."""
        if self.random.random() < 0.3:
            return self.random.choice(specials(self.source))
        return self.random.getrandbits(bits_of(self.source))

    def element(self) -> tuple[int, int, int]:
        scale, zero = self.scales(), self.zeros()
        x = self.code() if self.is_dequantizing else self.number(scale, zero)
        return x, scale, zero
