"""Tells a broken adapter from a failing framework: bits must be the same after a round trip."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from oracles.protocol import Bits, Unsupported, WithIdentity
from oracles.registry import Backend
from specs.formats import Format, formats
from specs.plain_text import plain_line

TEXTS = ("3.14", "", "NaN", "é ∞")


def smoke(backend: Backend) -> dict[str, str]:
    """Return, by dtype, what is wrong where bits do not come back from the adapter unchanged."""
    return {dtype: fault for dtype, fault in check_dtypes(backend) if fault}


def check_dtypes(backend: Backend) -> Iterator[tuple[str, str]]:
    """Yield each dtype that the adapter supports, and what is wrong with it, or an empty text.

    An oracle without ``identity`` is not checked: nothing is yielded.
    """
    oracle = backend.oracle
    if not isinstance(oracle, WithIdentity):
        return
    for entry in formats().values():
        sent = sample_patterns(entry)
        try:
            yield entry.name, _fault(entry, sent, oracle.identity(entry.name, sent.copy()))
        except Unsupported:
            continue
        except (Exception, SystemExit) as error:
            yield entry.name, plain_line(f"{type(error).__name__}: {error}")


def sample_patterns(entry: Format) -> Bits:
    """Return the patterns of a format to move: all of them, if it has up to 16 bits.

    Of up to 64 bits, these are the first and last, the single bits, and the ends of the NaNs. Of
    texts and of wider formats, a few fixed ones.
    """
    if entry.kind == "text":
        return np.array(TEXTS, object)
    if entry.bits > 64:
        return np.frombuffer(bytes(range(64)), entry.storage).copy()
    if entry.bits <= 16:
        return np.arange(1 << entry.bits, dtype=entry.storage)
    codes = {0, entry.mask, entry.sign_bit, *(1 << place for place in range(entry.bits))}
    for nans in entry.nan_codes:
        codes.update((nans.start, nans.stop - 1))
    return np.array(sorted(codes), entry.storage)


def _fault(entry: Format, sent: Bits, received: object) -> str:
    """Return how ``received`` differs from ``sent``; empty if it does not.

    Ledgers hash these texts as part of a verdict's message: changing one invalidates their digests.
    """
    if (
        not isinstance(received, np.ndarray)
        or received.shape != sent.shape
        or received.dtype != sent.dtype
    ):
        return "the way in and out gives another shape or storage back"
    wrong = np.flatnonzero(received != sent)
    if not wrong.size:
        return ""
    first = int(wrong[0])
    if entry.kind == "text" or entry.bits > 64:
        return f"the way in and out turns {sent[first]!r} into {received[first]!r}"
    before, after = (entry.hexadecimal(int(array[first])) for array in (sent, received))
    return f"the way in and out turns {before} into {after}"
