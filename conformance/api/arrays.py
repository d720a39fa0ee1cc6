"""Arrays that people pass in and get back, and the bit patterns that they stand for.

People hold numbers: lists, arrays of numpy and ml_dtypes, tensors of torch. Everything below holds
patterns. An unsigned array of a float's width is taken for its patterns, because that is how
projects without ml_dtypes keep small floats.
"""

from __future__ import annotations

import sys
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from oracles.adapters.dtype_table import names_in
from oracles.protocol import Bits
from reports.behaviors.regions import evaluate
from reports.counterexample.drawing import value_text
from reports.grading.allowed_answers import is_nan
from specs.behaviors import behaviors
from specs.errors import CastigateError
from specs.formats import Format, dtype_spelled, dtypes_spelled, format_named

ML_DTYPES = names_in("ml")
"""By dtype that ml_dtypes adds to numpy's, its name there."""


class TensorDtype(Protocol):
    """The members of ``torch.dtype`` that are used here, so that torch need not be imported."""

    @property
    def itemsize(self) -> int:
        """The number of bytes of an element."""

    @property
    def is_floating_point(self) -> bool:
        """Whether elements are floats."""


def format_of(dtype: object) -> Format:
    """Return the format that a dtype's name or object means; raise CastigateError if none.

    The object may be of numpy, ml_dtypes or torch: ``np.int8``, ``torch.bfloat16``.
    """
    if isinstance(dtype, str):
        return format_named(dtype_spelled(dtype))
    if isinstance(dtype, type | np.dtype):
        name = np.dtype(dtype).name
        return format_named(dtype_spelled("string" if name.startswith(("str", "obj")) else name))
    if not dtypes_spelled(str(dtype)):
        raise CastigateError(
            f"`{dtype}` is no dtype; write a name such as 'float32', or a dtype of numpy, ml_dtypes"
            " or torch"
        )
    return format_named(dtype_spelled(str(dtype)))


def array_of(form: Format, bits: Bits) -> NDArray[Any]:
    """Return the array of numpy's or ml_dtypes' own dtype that has these patterns.

    Raise CastigateError if neither has the dtype.
    """
    if form.kind == "text":
        return bits
    if form.name in ML_DTYPES:
        return bits.view(getattr(ml_dtypes, ML_DTYPES[form.name]))
    try:
        return bits.view(form.name)
    except TypeError:
        raise CastigateError(
            f"numpy has no arrays of {form.name}; ask for its patterns with bits=True"
        ) from None


def patterns_of(form: Format, values: object, name: str) -> Bits:
    """Return the patterns of numbers that are given as ``form``, in their shape.

    Floats round to the nearest value of the format, ties to even. ``name`` names them in errors.
    Raise CastigateError for what is no number of the format: out of its range, or a fraction where
    it has only integers.
    """
    held, bits = _held(form, values, name)
    if held is form:
        return bits
    rounded = _converted(held, form, bits, name)
    back = _converted(form, held, rounded, name)
    if form.is_integral:
        _check(form, held, bits, ~_same(held, bits, back), name)
    elif _has_overflow(form):
        is_over = _is_infinite(form, rounded) & ~_is_infinite(held, bits)
        is_lost = np.asarray(not form.has_zero) & _is_zero(held, bits)
        _check(form, held, bits, is_over | is_lost, name)
    else:
        is_largest = np.asarray((rounded & ~rounded.dtype.type(form.sign_bit)) == form.max_code)
        _check(form, held, bits, is_largest & ~_same(held, bits, back), name)
    return rounded


def answers_of(form: Format, returned: object, name: str) -> Bits:
    """Return the patterns of numbers that ``form`` can hold exactly; raise CastigateError if not.

    ``name`` names what returned them.
    """
    held, bits = _held(form, returned, name)
    if held is form:
        return bits
    rounded = _converted(held, form, bits, name)
    hint = ""
    if form.kind == held.kind == "integer" and form.bits == held.bits and form.is_signed:
        hint = f"; {held.name} is read as numbers: return patterns by .view(np.{form.name})"
    is_wrong = ~_same(held, bits, _converted(form, held, rounded, name))
    _check(form, held, bits, is_wrong, name, hint)
    return rounded


def _held(form: Format, values: object, name: str) -> tuple[Format, Bits]:
    """Return the format in which values are held, and their patterns; those of ``form`` are kept.

    Raise CastigateError for what is no array of numbers.
    """
    if type(values).__module__.partition(".")[0] == "torch":
        return _of_torch(form, values)
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise CastigateError(f"{name}: no array of numbers: {error}") from None
    if form.kind == "text":
        return form, np.asarray(array, object)
    if array.dtype.kind in "OUS":
        raise CastigateError(
            f"{name}: numpy makes no numbers of this, but `{array.dtype}`; give integers below"
            " 2^64 or floats"
        )
    found = format_of(array.dtype)
    # The bits are read below by a view, which takes every array to be of this machine's byte order.
    array = array.astype(array.dtype.newbyteorder("="), order="C", copy=False)
    if found == form or (array.dtype.kind == "u" and _are_patterns(form, array)):
        bits = array.view(form.storage)
        # A small format does not use all bits of its byte.
        return form, bits & bits.dtype.type(form.mask) if form.bits < 8 else bits
    return found, array.view(found.storage)


def _are_patterns(form: Format, array: NDArray[Any]) -> bool:
    """Return whether an unsigned array may hold the patterns of a format that is no integer."""
    return not form.is_integral and array.dtype.itemsize == np.dtype(form.storage).itemsize


def _of_torch(form: Format, tensor: Any) -> tuple[Format, Bits]:
    """Return the format and the patterns of a torch tensor; the patterns are copied to the host."""
    from oracles.adapters.torch_tensors import TorchTensors

    found = format_of(tensor.dtype)
    is_unsigned = found.kind == "integer" and not found.is_signed
    are_patterns = is_unsigned and _are_patterns(form, np.empty(0, found.storage))
    bits = TorchTensors(sys.modules["torch"]).bits(found.name, tensor.detach().cpu())
    return form if are_patterns or found == form else found, bits


def _converted(held: Format, form: Format, bits: Bits, name: str) -> Bits:
    """Return the patterns of values in another format: nearest, or of integers cut off and clamped.

    A NaN keeps its sign, and no payload. Raise CastigateError if a kind of number has no
    such conversion.
    """
    if "complex" in (held.kind, form.kind) or not (held.is_numeric and form.is_numeric):
        raise CastigateError(f"{name}: {held.name} is given where {form.name} is due")
    how = {"float": "nearest", "integer": "saturate", "boolean": "nonzero"}[form.kind]
    if form.kind == "float" and not _has_overflow(form):
        how = "nearest-clamp"
    codes, is_defined = evaluate(behaviors()[how], held, form, bits.reshape(-1))
    codes, is_defined = codes.reshape(bits.shape), is_defined.reshape(bits.shape)
    if held.kind == "float" and form.nan_codes:
        codes = np.where(is_nan(held, bits), _quiet_nans(held, form, bits, codes.dtype), codes)
    _check(form, held, bits, ~is_defined, name)
    return codes


def _quiet_nans(held: Format, form: Format, bits: Bits, storage: np.dtype[Any]) -> Bits:
    """Return for each pattern the NaN of a format without a payload, and of the pattern's sign."""
    positive = form.nan_codes[0]
    quiet = storage.type(positive[len(positive) // 2])
    if not (held.has_signed_nan and form.has_signed_nan):
        return np.full(bits.shape, quiet)
    is_negative = (bits & bits.dtype.type(held.sign_bit)) != 0
    return np.asarray(np.where(is_negative, quiet | storage.type(form.sign_bit), quiet))


def _has_overflow(form: Format) -> bool:
    """Return whether a format has an infinity or a NaN, which stands for what is out of range."""
    return form.entry.infinity or bool(form.nan_codes)


def _is_infinite(form: Format, bits: Bits) -> NDArray[np.bool_]:
    """Mark infinities, and in a format that has none its NaNs, which stand for an overflow."""
    if form.kind != "float":
        return np.zeros(bits.shape, bool)
    if not form.entry.infinity:
        return is_nan(form, bits)
    magnitude = bits & bits.dtype.type(form.mask & ~form.sign_bit)
    return np.asarray(magnitude == form.infinity_code) | is_nan(form, bits)


def _same(form: Format, one: Bits, other: Bits) -> NDArray[np.bool_]:
    """Mark equal values: equal patterns, two NaNs, or zeros of either sign."""
    same = one == other
    if form.kind == "float":
        same |= is_nan(form, one) & is_nan(form, other)
        same |= _is_zero(form, one) & _is_zero(form, other)
    return np.asarray(same)


def _is_zero(form: Format, bits: Bits) -> NDArray[np.bool_]:
    sign = form.sign_bit if form.kind == "float" and form.entry.zero == "signed" else 0
    return np.asarray((bits & bits.dtype.type(form.mask & ~sign)) == 0) & form.has_zero


def _check(
    form: Format, held: Format, bits: Bits, is_wrong: NDArray[np.bool_], name: str, hint: str = ""
) -> None:
    """Raise CastigateError if values are marked as no values of ``form``, with the first one."""
    wrong = np.flatnonzero(is_wrong)
    if wrong.size:
        at = int(wrong[0])
        value = value_text(held, int(bits.reshape(-1)[at]))
        others = wrong.size - 1
        more = f"; so {'is' if others == 1 else 'are'} {others:,} more" if others else ""
        raise CastigateError(f"{name}[{at}] is {value}, no value of {form.name}{more}{hint}")
