"""torch's carriers: operations that should move or convert the elements of a row exactly.

Each belongs to one of the tables that ``CARRIERS`` joins. A carrier that sets a mode leaves the
default behind, also if it fails: other cases run in the same process.
"""

from __future__ import annotations

from collections.abc import Mapping

_ONE = "x.new_ones(())"
_COLUMN = "x.reshape(-1, 1)"
_ONE_BY_ONE = "x.new_ones((1, 1))"
_ROWS = "torch.arange(x.shape[0], device=x.device)"
_ALL = "torch.ones(x.shape, dtype=torch.bool, device=x.device)"
_TARGET = "x.new_empty(x.shape, dtype={target})"
_MULTIPLY = f"x * {_ONE}"
_MORE = 4096
"""Zeros that follow in products of matrices: of few elements they take another kernel."""
_LONG = f"torch.nn.functional.pad(x, (0, {_MORE})).reshape(-1, 1)"
_BACK = f".reshape(-1)[:-{_MORE}]"
_MATMUL = f"torch.mm({_LONG}, {_ONE_BY_ONE}){_BACK}"

COMPUTED: Mapping[str, str] = {
    "multiply-by-one": _MULTIPLY,
    "divide-by-one": f"x / {_ONE}",
    "divide-product-by-255": "x.to({target}) * 255 / 255",
    "add-zero": "x + x.new_zeros(())",
    "subtract-zero": "x - x.new_zeros(())",
    "add-zero-tensor": "torch.add(x, torch.zeros_like(x))",
    "add-product-of-one": "torch.addcmul(torch.zeros_like(x), x, torch.ones_like(x))",
    "maximum-with-itself": "torch.maximum(x, x)",
    "minimum-with-itself": "torch.minimum(x, x)",
    "clamp-to-infinities": 'torch.clamp(x, -float("inf"), float("inf"))',
    "negate-twice": "-(-x)",
    "absolute-with-sign": "torch.copysign(torch.abs(x), x)",
    "absolute-by-sign": "torch.abs(x) * torch.sign(x)",
    "relu-of-both-signs": "torch.relu(x) - torch.relu(-x)",
    "keep-special-values": ('torch.nan_to_num(x, float("nan"), float("inf"), -float("inf"))'),
    "dropout-of-nothing": "torch.nn.functional.dropout(x, 0.0, training=True)",
    "complex-and-back": "torch.complex(x, torch.zeros_like(x)).real.contiguous()",
    "sum-of-one": f"{_COLUMN}.sum(dim=1, dtype={{target}})",
    "product-of-one": f"{_COLUMN}.prod(dim=1, dtype={{target}})",
    "mean-of-one": f"{_COLUMN}.mean(dim=1, dtype={{target}})",
    "cumulative-sum-of-one": f"{_COLUMN}.cumsum(dim=1, dtype={{target}}).reshape(-1)",
    "maximum-of-one": f"{_COLUMN}.amax(dim=1)",
    "average-pool-of-one": "torch.nn.functional.avg_pool1d(x.reshape(-1, 1, 1), 1).reshape(-1)",
    "max-pool-of-one": "torch.nn.functional.max_pool1d(x.reshape(-1, 1, 1), 1).reshape(-1)",
    "matmul-by-one": _MATMUL,
    "batched-matmul-by-one": (
        f"torch.bmm({_LONG}.unsqueeze(2), x.new_ones((x.shape[0] + {_MORE}, 1, 1))){_BACK}"
    ),
    "add-matmul-by-one": f"torch.addmm(x.new_zeros((1, 1)), {_LONG}, {_ONE_BY_ONE}){_BACK}",
    "linear-by-one": f"torch.nn.functional.linear({_LONG}, {_ONE_BY_ONE}){_BACK}",
    "einsum-by-one": f'torch.einsum("ij,jk->ik", {_LONG}, {_ONE_BY_ONE}){_BACK}',
    "convolution-by-one": (
        f"torch.nn.functional.conv1d({_LONG}.unsqueeze(2), x.new_ones((1, 1, 1))){_BACK}"
    ),
    "attention-to-one": (
        "torch.nn.functional.scaled_dot_product_attention("
        "*[torch.ones_like(x).reshape(-1, 1, 1, 1)] * 2, x.reshape(-1, 1, 1, 1)).reshape(-1)"
    ),
    "batch-norm-by-one": (
        f"torch.nn.functional.batch_norm({_COLUMN}, x.new_zeros(1), x.new_ones(1), eps=0.0)"
        ".reshape(-1)"
    ),
    "layer-norm-of-zeros": ("torch.nn.functional.layer_norm(torch.zeros_like(x), x.shape, bias=x)"),
    "rms-norm-of-ones": (
        "torch.nn.functional.rms_norm(torch.ones_like(x), x.shape, weight=x, eps=0.0)"
    ),
}
"""Carriers whose operation computes, and should return its input."""

MOVED: Mapping[str, str] = {
    "concatenate": "torch.cat([x[:1], x[1:]])",
    "stack": "torch.stack([x, x], dim=1)[:, 1]",
    "where": f"torch.where({_ALL}, x, torch.zeros_like(x))",
    "take": f"torch.index_select(x, 0, {_ROWS})",
    "gather": f"torch.gather(x, 0, {_ROWS})",
    "embedding": f"torch.nn.functional.embedding({_ROWS}, {_COLUMN}).reshape(-1)",
    "index-put": f"torch.zeros_like(x).index_put_(({_ROWS},), x)",
    "index-copy": f"torch.zeros_like(x).index_copy_(0, {_ROWS}, x)",
    "scatter": f"torch.zeros_like(x).scatter_(0, {_ROWS}, x)",
    "masked-scatter": f"torch.zeros_like(x).masked_scatter_({_ALL}, x)",
    "masked-select": f"torch.masked_select(x, {_ALL})",
    "roll": "torch.roll(torch.roll(x, 1), -1)",
    "flip": "torch.flip(torch.flip(x, (0,)), (0,))",
    "repeat-interleave": "torch.repeat_interleave(x, 2)[::2]",
    "pad": "torch.nn.functional.pad(x, (1, 1))[1:-1]",
    "transpose": "x.expand(64, -1).t().contiguous()[:, 1]",
    "sort-of-one": f"{_COLUMN}.sort(dim=1).values.reshape(-1)",
    "save-and-load": (
        "import io\nfile = io.BytesIO()\ntorch.save(x, file)\nfile.seek(0)\ny = torch.load(file)\n"
    ),
    "numbers-of-python": "y = torch.tensor(x.tolist(), dtype=x.dtype, device=x.device)\n",
}
"""Carriers whose operation moves elements."""

STORED: Mapping[str, str] = {
    "copy-into": f"{_TARGET}.copy_(x)",
    "copy-into-strided": "x.new_empty((x.shape[0], 2), dtype={target})[:, 0].copy_(x)",
    "copy-of-strided": f"{_TARGET}.copy_(torch.stack([x, x], dim=1)[:, 0])",
    "set-items": f"y = {_TARGET}\ny[:] = x\n",
    "add-out": f"torch.add(x, 0, out={_TARGET})",
    "multiply-out": f"torch.mul(x, {_ONE}, out={_TARGET})",
    "concatenate-out": f"torch.cat([x[:1], x[1:]], out={_TARGET})",
    "multiply-in-place": "torch.ones_like(x, dtype={target}).mul_(x)",
}
"""Carriers that store into a tensor of another dtype."""

PROMOTED: Mapping[str, str] = {
    "add-zero-of-target": "x + torch.zeros_like(x, dtype={target})",
    "multiply-by-one-of-target": "x * torch.ones_like(x, dtype={target})",
    "add-dimensionless-zero-of-target": "x + x.new_zeros((), dtype={target})",
    "add-dimensionless-double-zero": "x + x.new_zeros((), dtype=torch.float64)",
    "add-python-zero": "x + 0",
    "multiply-by-python-one": "x * 1.0",
    "concatenate-with-target": "torch.cat([x, x.new_zeros(1, dtype={target})])[:-1]",
    "where-with-target": f"torch.where({_ALL}, x, torch.zeros_like(x, dtype={{target}}))",
}
"""Carriers whose operand of a wider dtype makes torch promote x."""


def _within(context: str, expression: str) -> str:
    return f"with {context}:\n    y = {expression}\n"


def _under(sets: str, resets: str, expression: str) -> str:
    """Return the statements that carry while a mode is set."""
    return f"try:\n    {sets}\n    y = {expression}\nfinally:\n    {resets}\n"


def _after(sets: str, resets: str, expression: str) -> str:
    """Return the statements that carry once under a mode, and again after it has been reset."""
    return _under(sets, resets, expression) + f"y = {expression}\n"


def _beside(sets: str, resets: str, expression: str) -> str:
    """Return the statements that carry while a mode is set in another thread."""
    body = f"pool.submit(lambda: {sets}).result()\n        y = {expression}"
    leave = f"pool.submit(lambda: {resets}).result()"
    inner = f"    try:\n        {body}\n    finally:\n        {leave}\n"
    start = "from concurrent.futures import ThreadPoolExecutor\n"
    return f"{start}with ThreadPoolExecutor(1) as pool:\n{inner}"


def _in_new_pool(sets: str, resets: str, expression: str) -> str:
    """Return the statements that carry by worker threads that were started under a mode.

    A thread of Python has worker threads of its own, which end with it. The last copy of x is left
    to the second of two.
    """
    return f"""\
from concurrent.futures import ThreadPoolExecutor

def carry(x):
    try:
        {sets}
        torch.ones(1 << 17) * 1.0
    finally:
        {resets}
    length = x.shape[0]
    x = x.repeat((1 << 16) // max(length, 1) + 2)
    return ({expression})[-length:]

threads = torch.get_num_threads()
try:
    torch.set_num_threads(2)
    with ThreadPoolExecutor(1) as pool:
        y = pool.submit(carry, x).result()
finally:
    torch.set_num_threads(threads)
"""


_AUTOCAST = 'torch.autocast("cpu", dtype=torch.bfloat16)'
_HALF_AUTOCAST = 'torch.autocast("cpu", dtype=torch.float16)'
_OFF = 'torch.autocast("cpu", enabled=False)'

AUTOCAST: Mapping[str, str] = {
    **{
        f"{name}-under-autocast": _within(_AUTOCAST, COMPUTED[name])
        for name in (
            "matmul-by-one",
            "batched-matmul-by-one",
            "add-matmul-by-one",
            "linear-by-one",
            "convolution-by-one",
            "attention-to-one",
            "multiply-by-one",
            "maximum-of-one",
        )
    },
    "matmul-by-one-under-float16-autocast": _within(_HALF_AUTOCAST, _MATMUL),
    "linear-by-one-under-float16-autocast": _within(_HALF_AUTOCAST, COMPUTED["linear-by-one"]),
    "product-of-one-under-autocast": _within(_AUTOCAST, f"{_COLUMN}.prod(dim=1)"),
    "product-of-one-of-target-under-autocast": _within(_AUTOCAST, COMPUTED["product-of-one"]),
    "replicate-pad-under-autocast": _within(
        _AUTOCAST,
        'torch.nn.functional.pad(x.reshape(-1, 1, 1), (1, 1), mode="replicate")[:, 0, 1]',
    ),
    "concatenate-under-autocast": _within(_AUTOCAST, PROMOTED["concatenate-with-target"]),
    "stack-under-autocast": _within(
        _AUTOCAST, "torch.stack([x, torch.zeros_like(x, dtype={target})], dim=1)[:, 0]"
    ),
    "index-copy-under-autocast": _within(
        _AUTOCAST, f"torch.index_copy(torch.zeros_like(x, dtype={{target}}), 0, {_ROWS}, x)"
    ),
    "matmul-out-under-autocast": _within(
        _AUTOCAST,
        f"torch.mm({_LONG}, {_ONE_BY_ONE}, out=x.new_empty((x.shape[0] + {_MORE}, 1))){_BACK}",
    ),
    "add-matmul-in-place-under-autocast": _within(
        _AUTOCAST,
        f"x.new_zeros((x.shape[0] + {_MORE}, 1)).addmm_({_LONG}, {_ONE_BY_ONE}){_BACK}",
    ),
    "matmul-by-one-under-disabled-autocast": (f"with {_AUTOCAST}, {_OFF}:\n    y = {_MATMUL}\n"),
    "matmul-by-one-after-autocast": _within(_AUTOCAST, _MATMUL) + f"y = {_MATMUL}\n",
    "matmul-by-one-beside-autocast": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        f"with ThreadPoolExecutor(1) as pool, {_AUTOCAST}:\n"
        f"    y = pool.submit(lambda: {_MATMUL}).result()\n"
    ),
}
"""Carriers during, after, and beside autocast of the CPU in another thread."""

_CAST = "x.to({target})"
_FLUSH = "torch.set_flush_denormal(True)", "torch.set_flush_denormal(False)"
_TOWARD_ZERO = "set_rounding(0xC00)", "set_rounding(0)"
_ROUNDING = "import ctypes\nset_rounding = ctypes.CDLL(None).fesetround\n"
_SET_DEFAULT = "torch.set_default_dtype(torch.{})"
_DETERMINISTIC = (
    'torch.set_deterministic_debug_mode("error")',  # unlike its sister, it imports no compiler
    'torch.set_deterministic_debug_mode("default")',
)


def _by_default(dtype: str) -> tuple[str, str]:
    return _SET_DEFAULT.format(dtype), _SET_DEFAULT.format("float32")


def _by_precision(precision: str) -> tuple[str, str]:
    sets = 'torch.set_float32_matmul_precision("{}")'
    return sets.format(precision), sets.format("highest")


MODES: Mapping[str, str] = {
    "multiply-under-flush": _under(*_FLUSH, _MULTIPLY),
    "multiply-after-flush": _after(*_FLUSH, _MULTIPLY),
    "multiply-beside-flush": _beside(*_FLUSH, _MULTIPLY),
    "multiply-in-pool-after-flush": _in_new_pool(*_FLUSH, _MULTIPLY),
    "cast-under-flush": _under(*_FLUSH, _CAST),
    "cast-after-flush": _after(*_FLUSH, _CAST),
    "cast-beside-flush": _beside(*_FLUSH, _CAST),
    "cast-under-rounding-toward-zero": _ROUNDING + _under(*_TOWARD_ZERO, _CAST),
    "cast-after-rounding-toward-zero": _ROUNDING + _after(*_TOWARD_ZERO, _CAST),
    "cast-in-pool-after-rounding-toward-zero": _ROUNDING + _in_new_pool(*_TOWARD_ZERO, _CAST),
    "cast-beside-rounding-toward-zero": _ROUNDING + _beside(*_TOWARD_ZERO, _CAST),
    "multiply-under-rounding-toward-zero": _ROUNDING + _under(*_TOWARD_ZERO, _MULTIPLY),
    "matmul-under-high-precision": _under(*_by_precision("high"), _MATMUL),
    "matmul-under-medium-precision": _under(*_by_precision("medium"), _MATMUL),
    "matmul-after-medium-precision": _after(*_by_precision("medium"), _MATMUL),
    "multiply-under-default-float64": _under(*_by_default("float64"), _MULTIPLY),
    "multiply-by-python-one-under-default-float64": _under(*_by_default("float64"), "x * 1.0"),
    "multiply-by-python-one-under-default-float16": _under(*_by_default("float16"), "x * 1.0"),
    "multiply-by-python-one-under-default-bfloat16": _under(*_by_default("bfloat16"), "x * 1.0"),
    "multiply-by-python-one-after-default-float64": _after(*_by_default("float64"), "x * 1.0"),
    "multiply-by-python-one-beside-default-float64": _beside(*_by_default("float64"), "x * 1.0"),
    **{
        f"{name}-under-determinism": _under(*_DETERMINISTIC, {**MOVED, **STORED}[name])
        for name in ("index-put", "index-copy", "scatter", "concatenate", "copy-into")
    },
}
"""Carriers while a mode is set, after it was set, or while another thread has set it."""

OF_CPU = frozenset((*AUTOCAST, *MODES))
"""The carriers that set modes of the CPU: they say nothing of another device."""

CARRIERS: Mapping[str, str] = {
    **COMPUTED,
    **MOVED,
    **STORED,
    **PROMOTED,
    **AUTOCAST,
    **MODES,
}

FEW_COMPILED: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("bfloat16", "bfloat16"): (
        "multiply-by-one",
        "add-product-of-one",
        "absolute-with-sign",
        "relu-of-both-signs",
        "keep-special-values",
        "sum-of-one",
        "cumulative-sum-of-one",
        "matmul-by-one",
        "attention-to-one",
        "layer-norm-of-zeros",
        "concatenate",
        "index-put",
        "scatter",
        "pad",
    ),
    ("float32", "bfloat16"): ("copy-into", "multiply-in-place", "sum-of-one"),
    ("float32", "float16"): ("copy-into",),
    ("float32", "int32"): ("copy-into", "multiply-in-place"),
    ("float64", "float32"): ("copy-into",),
    ("bfloat16", "float32"): ("add-zero-of-target",),
    ("float16", "float32"): ("divide-product-by-255",),
    ("int64", "float32"): ("add-zero-of-target",),
}
"""By pair, the carriers that are compiled: a few, as each costs seconds of a C++ compiler."""
