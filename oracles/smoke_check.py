"""Tells a broken adapter from a failing framework: bits must go in and out unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oracles.protocol import Bits, Unsupported
from oracles.registry import Backend
from specs.formats import Format, formats

TEXTS = ("3.14", "", "NaN", "é ∞")


def smoke(backend: Backend) -> dict[str, str]:
    """The dtypes whose bits an adapter changes or loses, each with what it did to them."""
    return {dtype: fault for dtype, fault in moved(backend) if fault}


def moved(backend: Backend) -> Iterator[tuple[str, str]]:
    """The dtypes that an adapter offers, each with what it does to their bits, if anything.

    An adapter says how with ``identity(dtype, bits)``; one without it is taken at its word.
    """
    identity = getattr(backend.oracle, "identity", None)
    if identity is None:
        return
    for form in formats().values():
        sent = samples(form)
        try:
            yield form.name, _fault(form, sent, identity(form.name, sent.copy()))
        except Unsupported:
            continue
        except (Exception, SystemExit) as error:
            yield form.name, f"{type(error).__name__}: {error}"


def samples(form: Format) -> Bits:
    """All patterns up to 16 bits; the ends, specials and single bits beyond."""
    if form.kind == "text":
        return np.array(TEXTS, object)
    if form.bits > 64:
        return np.frombuffer(bytes(range(64)), form.storage).copy()
    if form.bits <= 16:
        return np.arange(1 << form.bits, dtype=form.storage)
    codes = {0, form.mask, form.sign_bit, *(1 << place for place in range(form.bits))}
    for nans in form.nan_codes:
        codes.update((nans.start, nans.stop - 1))
    return np.array(sorted(codes), form.storage)


def _fault(form: Format, sent: Bits, back: object) -> str:
    if not isinstance(back, np.ndarray) or back.shape != sent.shape or back.dtype != sent.dtype:
        return "the way in and out gives another shape or storage back"
    wrong = np.flatnonzero(back != sent)
    if not wrong.size:
        return ""
    first = int(wrong[0])
    if form.kind == "text" or form.bits > 64:
        return f"the way in and out turns {sent[first]!r} into {back[first]!r}"
    turned = f"{form.hexadecimal(int(sent[first]))} into {form.hexadecimal(int(back[first]))}"
    return f"the way in and out turns {turned}"
