"""Mechanisms by which a library may have decoded blocks other than documented."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from conformance.families.blocks.code_wrongs import interleave_halves, part_pairs, swap_neighbors
from conformance.families.blocks.grading import GradedBlocks, Part, Y, is_nan
from conformance.families.blocks.kernels import (
    NUMBER,
    decoded,
    in_blocks,
    products,
    values_of,
)
from conformance.families.blocks.wrong import Wrong, patterns_of, rounded_to
from oracles.protocol import Bits, Floats
from specs.model.block_entry import BlockQuestion

Products = NDArray[Any]
ProductMechanism = Callable[[GradedBlocks], Products]


def followed_in_products(answered: Sequence[GradedBlocks], part: Part) -> tuple[str, ...]:
    """Return the names of the mechanisms that give all numbers of a part; empty if none does."""
    return tuple(
        row.name for row in WRONGS if all(_gives(each, row.answers, part) for each in answered)
    )


def _gives(each: GradedBlocks, mechanism: ProductMechanism, part: Part) -> bool:
    number, result = each.ruling.number, each.results[Y]
    with np.errstate(all="ignore"):
        found = mechanism(each).astype(number.storage)
    differs = each.graded(Y, part) & (found != result)
    return not (differs & ~(is_nan(number, found) & is_nan(number, result))).any()


def _own(each: GradedBlocks) -> Products:
    return each.expected[Y].codes


def _from(change: Callable[[GradedBlocks], tuple[Bits, Bits]]) -> ProductMechanism:
    """Return the mechanism that multiplies the codes and scales that ``change`` returns."""

    def found(each: GradedBlocks) -> Products:
        x, scale = change(each)
        return products(each.ruling, x, scale, each.global_scale).codes

    return found


def _moved(order: Callable[[Products], Products]) -> ProductMechanism:
    return _from(
        lambda each: (each.unblocked(order(in_blocks(each.ruling.size, each.x))), each.scale)
    )


def _scaled(step: int) -> ProductMechanism:
    def change(each: GradedBlocks) -> tuple[Bits, Bits]:
        is_number = each.scale <= each.ruling.scale.max_code
        moved = np.clip(each.scale.astype(np.int64) + step, 0, each.ruling.scale.max_code)
        return each.x, np.where(is_number, moved, each.scale).astype(each.scale.dtype)

    return _from(change)


def _through(dtype: str) -> ProductMechanism:
    """Return the mechanism that rounds float32 products to a narrower float.

    Products of another dtype stay as the document has them.
    """

    def found(each: GradedBlocks) -> Products:
        number, own = each.ruling.number, _own(each)
        if number.name != "float32":
            return own
        bits = rounded_to(dtype, own.view(np.float32).astype(np.float64)).astype(np.float32)
        return bits.view(np.uint32)

    return found


def _truncated(each: GradedBlocks) -> Products:
    own = _own(each).astype(np.int64)
    elements = values_of(each.ruling.element)[in_blocks(each.ruling.size, each.x)]
    factors = decoded(each.ruling.scale, each.scale)[..., np.newaxis] * each.global_scale
    exact = each.unblocked(np.abs(elements * factors))
    return own - (np.abs(decoded(each.ruling.number, own)) > exact)


def _without_subnormals(each: GradedBlocks) -> Products:
    number, own = each.ruling.number, _own(each)
    sign = own & np.array(number.sign_bit, own.dtype)
    return np.where(own - sign < 1 << number.entry.mantissa, sign, own)


def _smallest_scale_as_zero(each: GradedBlocks) -> Products:
    own = _own(each)
    blocks = in_blocks(each.ruling.size, own)
    sign = blocks & np.array(each.ruling.number.sign_bit, own.dtype)
    return each.unblocked(np.where(each.scale[..., np.newaxis] == 0, sign, blocks))


def _by_rounded_product(each: GradedBlocks) -> Products:
    scale = decoded(each.ruling.scale, each.scale)
    return _multiplied(each, rounded_to("float32", scale * each.global_scale))


def _by_rounded_scales(each: GradedBlocks) -> Products:
    scale = decoded(each.ruling.scale, each.scale)
    return _multiplied(each, rounded_to(each.ruling.number.name, scale) * each.global_scale)


def _multiplied(each: GradedBlocks, factors: Floats) -> Products:
    elements = values_of(each.ruling.element)[in_blocks(each.ruling.size, each.x)]
    return patterns_of(each.ruling.number.name, each.unblocked(elements * factors[..., np.newaxis]))


def _positive_zeros(each: GradedBlocks) -> Products:
    own = _own(each)
    return np.where(own == each.ruling.number.sign_bit, 0, own)


def _positive_zero_codes(each: GradedBlocks) -> Products:
    return np.where(each.x == each.ruling.element.sign_bit, _positive_zeros(each), _own(each))


def _anything_at(question: BlockQuestion) -> ProductMechanism:
    """Return the mechanism that accepts any answer to the elements that ``question`` decides.

    Elsewhere it gives the document's products.
    """
    return lambda each: np.where(
        each.expected[Y].asked == NUMBER[question], each.results[Y], _own(each)
    )


WRONGS: tuple[Wrong[GradedBlocks, Products], ...] = (
    Wrong(
        "drops-the-sign-of-zero-codes",
        "drops the sign of codes of zero when it decodes blocks",
        _positive_zero_codes,
    ),
    Wrong(
        "drops-the-sign-of-zero-products",
        "drops the sign of products that are zero when it decodes blocks",
        _positive_zeros,
    ),
    Wrong(
        "makes-small-products-zero",
        "makes zero of subnormal products when it decodes blocks",
        _without_subnormals,
    ),
    Wrong(
        "reads-the-smallest-scale-as-zero",
        "reads the smallest scale of a block as zero",
        _smallest_scale_as_zero,
    ),
    Wrong(
        "multiplies-codes-by-the-rounded-product-of-the-scales",
        "rounds the product of scale and global scale before it multiplies codes by it",
        _by_rounded_product,
    ),
    Wrong(
        "rounds-scales-to-the-dtype-of-the-products",
        "rounds scales to the dtype of the products before it multiplies codes by them",
        _by_rounded_scales,
    ),
    Wrong("reads-scales-one-code-too-large", "reads each scale as the next larger one", _scaled(1)),
    Wrong(
        "reads-scales-one-code-too-small", "reads each scale as the next smaller one", _scaled(-1)
    ),
    Wrong(
        "reads-nan-scales-as-numbers",
        "reads a NaN as a number where it is the scale of a block",
        _anything_at("nan-scale"),
    ),
    Wrong(
        "reads-nan-codes-as-numbers",
        "reads NaNs among the codes of blocks as numbers",
        _anything_at("nan-code"),
    ),
    Wrong(
        "reads-infinite-codes-as-numbers",
        "reads infinities among the codes of blocks as numbers",
        _anything_at("infinity-code"),
    ),
    Wrong("truncates-products", "truncates products when it decodes blocks", _truncated),
    Wrong(
        "rounds-products-to-bfloat16",
        "rounds products to bfloat16 when it decodes blocks",
        _through("bfloat16"),
    ),
    Wrong(
        "rounds-products-to-float16",
        "rounds products to float16 when it decodes blocks",
        _through("float16"),
    ),
    Wrong(
        "decodes-the-codes-of-a-byte-in-the-other-order",
        "swaps the two codes of a byte when it decodes blocks",
        _moved(swap_neighbors),
    ),
    Wrong(
        "decodes-halves-of-a-block-interleaved",
        "decodes the codes of a block in another order: the halves are interleaved",
        _moved(interleave_halves),
    ),
    Wrong(
        "decodes-pairs-of-a-block-parted",
        "decodes the codes of a block in another order: first all even places, then the odd ones",
        _moved(part_pairs),
    ),
)
"""The mechanisms by which blocks may be decoded to other numbers."""
