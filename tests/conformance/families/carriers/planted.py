"""Faults of carriers as public threads describe them, each planted in one step of an exact model.

A model carries a row in three steps: it loads the patterns, computes, and stores. Without a fault
it answers as the reference. A fault changes one step, for some dtypes or some carriers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from conformance.driver import BackendJudge
from conformance.families.reference import Reference
from conformance.judging.asking import Settings
from oracles.registry import Backend
from reports.behaviors.regions import evaluate
from reports.findings.finding import Finding
from reports.findings.read_findings import read_findings
from reports.grading.allowed_answers import is_nan
from reports.run_store.record import BackendRecord
from reports.run_store.store import create
from specs.behaviors import behaviors
from specs.cases import Case
from specs.editions import edition
from specs.formats import format_named
from specs.loader import document_named, document_word, documents
from tests.reports.common import record

RIGHT = Reference()
DOCUMENT = "planted-carriers"

Load = Callable[[Case, Any], Any]
"""Takes a case and patterns of its source, and returns those that the operation gets."""
Finish = Callable[[Case, Any, Any], Any]
"""Takes a case, what was loaded and the right answers to that, and returns other answers."""


@dataclass(frozen=True)
class Fault:
    """A planted fault: the finding that it must become, and the thread that describes it, if any.

    ``wants`` is the name of a finding, which ends with the step at fault.
    """

    wants: str
    answer: Callable[[Case, Any], Any]
    thread: str = ""


def carried(load: Load | None = None, finish: Finish | None = None) -> Callable[[Case, Any], Any]:
    """Carry as the reference does, but for a fault in the load or after it."""

    def carry(case: Case, bits: Any) -> Any:
        loaded = load(case, bits) if load is not None else bits
        answers = RIGHT.carry(case, loaded)
        return finish(case, loaded, answers) if finish is not None else answers

    return carry


def loads(dtype: str, change: Callable[[Any], Any]) -> Callable[[Case, Any], Any]:
    """Carry with a fault in each load of a dtype."""
    return carried(load=lambda case, bits: change(bits) if case.source == dtype else bits)


def loads_through(dtype: str, back: str) -> Callable[[Case, Any], Any]:
    """Carry with a fault in each load of a dtype: through float32, and back by a behavior."""
    there, again = Case("", "", dtype, "float32"), Case("", "", "float32", dtype)
    return loads(dtype, lambda bits: by(back, again, by("nearest", there, bits)))


def stores(dtype: str, finish: Finish) -> Callable[[Case, Any], Any]:
    """Carry with a fault in each store of a dtype."""

    def only(case: Case, loaded: Any, answers: Any) -> Any:
        return finish(case, loaded, answers) if case.target == dtype else answers

    return carried(finish=only)


def by(behavior: str, case: Case, bits: Any) -> Any:
    """Answer by a behavior, whatever the rules of the case say."""
    source, target = format_named(case.source), format_named(case.target)
    codes, _ = evaluate(behaviors()[behavior], source, target, bits)
    return codes


def computes(carriers: tuple[str, ...], finish: Finish, *dtypes: str) -> Callable[[Case, Any], Any]:
    """Carry with a fault in some operations, for some dtypes of the source or for all."""

    def only(case: Case, loaded: Any, answers: Any) -> Any:
        is_meant = case.mode["carrier"] in carriers and (not dtypes or case.source in dtypes)
        return finish(case, loaded, answers) if is_meant else answers

    return carried(finish=only)


def flushed(bits: Any, exponent: int) -> Any:
    """Replace subnormal patterns by zeros of their sign; ``exponent`` is the exponent's mask."""
    mask = bits.dtype.type(exponent)
    sign = bits.dtype.type(1 << (8 * bits.dtype.itemsize - 1))
    return np.where(bits & mask, bits, bits & sign)


BF16, F16, F32 = 0x7F80, 0x7C00, 0x7F800000
"""The masks of exponents."""


def through(dtype: str) -> Finish:
    """Round what was loaded to another dtype first."""

    def finish(case: Case, loaded: Any, answers: Any) -> Any:
        there = by("nearest", Case("", "", case.source, dtype), loaded)
        if format_named(case.target).is_integral:
            return by("via-int64-saturate", Case("", "", dtype, case.target), there)
        return by("nearest", Case("", "", dtype, case.target), there)

    return finish


def behaving(behavior: str) -> Finish:
    """Answer by a behavior, but to NaNs and zeros as the reference does."""

    def finish(case: Case, loaded: Any, answers: Any) -> Any:
        source = format_named(case.source)
        is_kept = is_nan(source, loaded) | (loaded & loaded.dtype.type(source.sign_bit - 1) == 0)
        return np.where(is_kept, answers, by(behavior, case, loaded))

    return finish


def constant(pattern: int) -> Finish:
    """Answer all inputs by one pattern."""
    return lambda case, loaded, answers: np.full_like(answers, pattern)


def rounds_down(case: Case, loaded: Any, answers: Any) -> Any:
    """Round toward -infinity: a negative number that is cut off is moved away from zero."""
    cut = behaving("truncate-infinity")(case, loaded, answers)
    given, got = (
        by("nearest", Case("", "", dtype, "float64"), bits).view(np.float64)
        for dtype, bits in ((case.source, loaded), (case.target, cut))
    )
    return np.where(got > given, cut + cut.dtype.type(1), cut)


def times_reciprocal(case: Case, loaded: Any, answers: Any) -> Any:
    """Multiply the product with 255 by the float32 nearest to 1/255."""
    divisor = np.float32(255)
    with np.errstate(all="ignore"):
        return (answers.view(np.float32) * divisor * (1 / divisor)).view(np.uint32)


FAULTS: dict[str, Fault] = {
    "a norm stores by truncation": Fault(
        "rounds-toward-zero-in-store",
        stores("bfloat16", behaving("truncate-infinity")),
        "https://github.com/ROCm/aiter/issues/5151",
    ),
    "abs through float32": Fault(
        "through-float32-in-operation",
        computes(("absolute-with-sign",), through("float32"), "int32"),
        "https://github.com/pytorch/pytorch/issues/190052",
    ),
    "a fusion keeps what bfloat16 would round": Fault(
        "skips-rounding-in-operation",
        computes(("bfloat16-and-back",), lambda case, loaded, answers: loaded),
        "https://github.com/pytorch/pytorch/issues/181568",
    ),
    "a fusion keeps what float16 would round": Fault(
        "skips-rounding-in-operation",
        computes(("float16-and-back",), lambda case, loaded, answers: loaded),
        "https://github.com/pytorch/pytorch/issues/185337",
    ),
    "a copy flushes": Fault(
        "flushes-subnormals-in-load",
        loads("bfloat16", lambda bits: flushed(bits, BF16)),
        "https://github.com/tenstorrent/tt-metal/issues/54899",
    ),
    "a store flushes": Fault(
        "nearest-flush-in-store",
        stores("bfloat16", behaving("nearest-flush")),
        "https://github.com/JuliaMath/BFloat16s.jl/issues/125",
    ),
    "a copy writes nothing": Fault(
        "zero-in-operation",
        computes(("copy-into",), constant(0)),
        "https://github.com/pytorch/pytorch/issues/197715",
    ),
    "halves away from zero": Fault(
        "rounds-nearest-away-in-store",
        stores("bfloat16", behaving("half-away-infinity")),
        "https://github.com/pytorch/FBGEMM/pull/5648",
    ),
    "a mode left behind": Fault(
        "rounds-toward-zero-in-operation",
        computes(("copy-after-rounding-down",), behaving("truncate-infinity")),
        "https://github.com/Xilinx/mlir-aie/pull/3726",
    ),
    "another kernel leaves a mode behind": Fault(
        "rounds-floor-in-operation",
        computes(("copy-after-rounding-down",), rounds_down),
        "https://github.com/amd/IRON/issues/180",
    ),
    "a core whose register rounds down": Fault(
        "rounds-floor-in-store",
        stores("bfloat16", rounds_down),
        "https://github.com/Xilinx/mlir-aie/pull/3587",
    ),
    "a matmul rounds down": Fault(
        "rounds-floor-in-operation",
        computes(("autocast-matmul",), rounds_down, "float32"),
        "https://github.com/Xilinx/mlir-aie/issues/2983",
    ),
    "an operation truncates where its siblings round": Fault(
        "rounds-toward-zero-in-operation",
        computes(("add-out",), behaving("truncate-infinity"), "float32"),
        "https://github.com/tenstorrent/tt-metal/issues/57408",
    ),
    "a fused multiply-add truncates": Fault(
        "rounds-toward-zero-in-operation",
        computes(("autocast-matmul",), behaving("truncate-infinity"), "float32"),
        "https://github.com/ROCm/rocm-systems/pull/10913",
    ),
    "flushing left on": Fault(
        "nearest-flush-in-operation", computes(("copy-after-flush",), behaving("nearest-flush"))
    ),
    "another thread's flushing": Fault(
        "flush-nearest-in-operation", computes(("copy-beside-thread",), behaving("flush-nearest"))
    ),
    "autocast saturates": Fault(
        "maximum-in-operation", computes(("autocast-matmul",), behaving("nearest-clamp"))
    ),
    "float16 stores saturate": Fault(
        "maximum-in-store", stores("float16", behaving("nearest-clamp"))
    ),
    "float64 is loaded as float32": Fault(
        "rounds-twice-through-float32-in-load", loads_through("float64", "nearest")
    ),
    "float32 is loaded as bfloat16": Fault(
        "ignores-16-low-bits-in-load", loads("float32", lambda bits: bits & np.uint32(0xFFFF0000))
    ),
    "int32 is loaded as float32": Fault(
        "through-float32-in-load", loads_through("int32", "via-int64-saturate")
    ),
    "a product flushes": Fault(
        "flush-nearest-in-operation",
        computes(
            ("multiply-by-one",), lambda case, loaded, answers: flushed(answers, F32), "float32"
        ),
    ),
    "a mean in bfloat16": Fault(
        "rounds-twice-through-bfloat16-in-operation",
        computes(("mean-of-many",), through("bfloat16"), "float32"),
    ),
    "a matmul in TF32": Fault(
        "ignores-13-low-bits-in-operation",
        computes(
            ("matmul-by-one",),
            lambda case, loaded, answers: answers & np.uint32(0xFFFFE000),
            "float32",
        ),
    ),
    "a sum saturates": Fault(
        "saturate-in-operation",
        computes(
            ("sum-as-target",), lambda case, loaded, answers: by("saturate", case, loaded), "int32"
        ),
        "https://github.com/pytorch/pytorch/issues/179415",
    ),
    "pixels are truncated": Fault(
        "rounds-toward-zero-in-operation",
        computes(("round-to-image",), lambda case, loaded, answers: by("saturate", case, loaded)),
        "https://github.com/pytorch/vision/pull/9646",
    ),
    "a division multiplies by the reciprocal": Fault(
        "unexplained",
        computes(("divide-product-by-255",), times_reciprocal),
        "https://github.com/Xilinx/brevitas/issues/1594",
    ),
    "a norm rounds twice": Fault(
        "rounds-twice-through-bfloat16-in-operation",
        computes(("normalize",), through("bfloat16"), "float16"),
        "https://github.com/amd/IRON/pull/139",
    ),
}

"""The faults by their descriptions. Threads of devices that cannot be had stand for many others."""

THREADS = {
    "https://github.com/pytorch/pytorch/issues/195214": "a fusion keeps what bfloat16 would round",
    "https://github.com/sgl-project/sglang/pull/38533": "a fusion keeps what bfloat16 would round",
    "https://github.com/modular/modular/issues/6159": "a fusion keeps what bfloat16 would round",
    "https://github.com/Xilinx/mlir-aie/pull/3599": "a mode left behind",
    "https://github.com/tenstorrent/tt-metal/pull/27171": "a norm stores by truncation",
    "https://github.com/jax-ml/jax/issues/38995": "a store flushes",
    **{fault.thread: name for name, fault in FAULTS.items() if fault.thread},
}
"""By the address of a public thread: the planted fault that shows what it describes."""


class Carrier:
    """An oracle that carries by a function, and casts as the reference."""

    name, version = "faulty", "1"
    claims = (DOCUMENT,)

    def __init__(self, answer: Callable[[Case, Any], Any]) -> None:
        self.carry, self.cast = answer, RIGHT.cast


@contextmanager
def registered() -> Iterator[None]:
    """Let the document of the planted faults be known; other tests ask all known documents."""
    document_word(str(Path(__file__).with_name("planted.yaml")))
    try:
        yield
    finally:
        del documents().own[DOCUMENT]


def findings(folder: Path, answer: Callable[[Case, Any], Any]) -> tuple[Finding, ...]:
    """Judge all cases of the document on a backend that carries by a function."""
    settings = Settings(max_examples=100, asked_for=frozenset({DOCUMENT}))
    judge = BackendJudge(Backend("faulty", Carrier(answer)), {}, settings)
    cases = [*edition(document_named(DOCUMENT), "1").cases()]
    store = create(str(folder), record(backends=(BackendRecord(name="faulty", version="1"),)))
    rows = [("faulty", case, judge.judge(case)) for case in cases]
    return read_findings(store.finish(rows, lambda: 1)).get("faulty", ())
