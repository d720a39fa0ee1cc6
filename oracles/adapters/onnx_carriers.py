"""ONNX's carriers: operators that should move or convert the elements of a row exactly.

An entry is the nodes that lead from x, a row of n elements, to y, in ONNX's text format. ``{type}``
stands for the source's type, ``{target}``, ``{float16}`` and the like for the number of a dtype.
Names of ``CONSTANTS`` in the nodes stand for initializers, which the model gets as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from oracles.adapters.onnx_models import DTYPES, LATEST, ModelBuilder, parse_statement, typed
from oracles.protocol import Bits, Unsupported
from specs.cases import CARRIER, Case

DOCUMENT = "onnx-carriers"

COLUMN = "column = Reshape(x, to_column)"
IMAGE = "image = Reshape(x, to_image)"
COUNT = "count = Size(x)"
ROWS = "rows = Range(start, count, step)"
SHAPE = "shape = Shape(x)"
BLANK = "blank = Expand(zero, shape)"
HALF = "half = Cast<to = {float16}>(x)"
BRAIN = "brain = Cast<to = {bfloat16}>(x)"
SINGLE = "single = Cast<to = {float32}>(x)"
NARROW = "narrow = Cast<to = {target}>(x)"
WIDEN = "y = Cast<to = {target}>(through)"
INTO_ROW = "y = Reshape(found, to_row)"

NODES: Mapping[str, tuple[str, ...]] = {
    # The operator computes, and should give what it gets.
    "multiply-by-one": ("y = Mul(x, one)",),
    "divide-by-one": ("y = Div(x, one)",),
    "divide-hidden-product-by-255": (
        "wide = Cast<to = {target}>(x)",
        "is_number = Equal(x, x)",
        "factor = Where(is_number, byte, wide)",
        "product = Mul(wide, factor)",
        "y = Div(product, byte)",
    ),
    "add-zero": ("y = Add(x, zero)",),
    "subtract-zero": ("y = Sub(x, zero)",),
    "power-of-one": ("y = Pow(x, one)",),
    "maximum-with-itself": ("y = Max(x, x)",),
    "minimum-with-itself": ("y = Min(x, x)",),
    "mean-of-one-input": ("y = Mean(x)",),
    "negate-twice": ("minus = Neg(x)", "y = Neg(minus)"),
    "absolute-with-sign": (
        "size = Abs(x)",
        "minus = Neg(size)",
        "is_negative = Less(x, zero)",
        "y = Where(is_negative, minus, size)",
    ),
    "leaky-relu-by-one": ("y = LeakyRelu<alpha = 1.0>(x)",),
    "clip-without-limits": ("y = Clip(x)",),
    "dropout-of-inference": ("y = Dropout(x)",),
    "sum-of-one": (COLUMN, "y = ReduceSum<keepdims = 0>(column, second_axis)"),
    "mean-of-one": (COLUMN, "y = ReduceMean<keepdims = 0>(column, second_axis)"),
    "product-of-one": (COLUMN, "y = ReduceProd<keepdims = 0>(column, second_axis)"),
    "maximum-of-one": (COLUMN, "y = ReduceMax<keepdims = 0>(column, second_axis)"),
    "cumulative-sum-of-one": (COLUMN, "found = CumSum(column, step)", INTO_ROW),
    "top-of-one": (COLUMN, "found, places = TopK(column, single_one)", INTO_ROW),
    "matmul-by-one": (COLUMN, "found = MatMul(column, one_by_one)", INTO_ROW),
    "gemm-by-one": (COLUMN, "found = Gemm(column, one_by_one)", INTO_ROW),
    "einsum-of-itself": ('y = Einsum<equation = "i->i">(x)',),
    "convolve-by-one": (IMAGE, "found = Conv(image, kernel)", INTO_ROW),
    "max-pool-of-one": (IMAGE, "found = MaxPool<kernel_shape = [1]>(image)", INTO_ROW),
    "average-pool-of-one": (IMAGE, "found = AveragePool<kernel_shape = [1]>(image)", INTO_ROW),
    "attention-to-one": (
        "values = Reshape(x, to_heads)",
        "shape = Shape(values)",
        "keys = Expand(zero, shape)",
        "found = Attention(keys, keys, values)",
        INTO_ROW,
    ),
    "scatter-add": (
        SHAPE,
        BLANK,
        COUNT,
        ROWS,
        'y = ScatterElements<reduction = "add">(blank, rows, x)',
    ),
    "or-with-itself": ("y = Or(x, x)",),
    "bitwise-or-with-itself": ("y = BitwiseOr(x, x)",),
    # The operator moves elements.
    "identity": ("y = Identity(x)",),
    "concatenate": (
        "left = Slice(x, first, second)",
        "right = Slice(x, second, end)",
        "y = Concat<axis = 0>(left, right)",
    ),
    "where": ("y = Where(always, x, zero)",),
    "take": (COUNT, ROWS, "y = Gather(x, rows)"),
    "take-along-axis": (COUNT, ROWS, "y = GatherElements(x, rows)"),
    "take-by-tuples": (COUNT, ROWS, "places = Reshape(rows, to_column)", "y = GatherND(x, places)"),
    "scatter": (SHAPE, BLANK, COUNT, ROWS, "y = ScatterElements(blank, rows, x)"),
    "scatter-by-tuples": (
        SHAPE,
        BLANK,
        COUNT,
        ROWS,
        "places = Reshape(rows, to_column)",
        "y = ScatterND(blank, places, x)",
    ),
    "cache-update": (
        "update = Reshape(x, to_sequence)",
        "shape = Shape(update)",
        "past = Expand(zero, shape)",
        "found = TensorScatter(past, update)",
        INTO_ROW,
    ),
    "slice": ("y = Slice(x, first, end)",),
    "reverse-twice": (
        "turned = Slice(x, last, before_first, first, backward)",
        "y = Slice(turned, last, before_first, first, backward)",
    ),
    "tile": ("y = Tile(x, single_one)",),
    "expand": ("y = Expand(x, single_one)",),
    "reshape": ("found = Reshape(x, to_column)", INTO_ROW),
    "transpose": (COLUMN, "found = Transpose<perm = [1, 0]>(column)", INTO_ROW),
    "pad": ("padded = Pad(x, ends)", "y = Slice(padded, second, last)"),
    "squeeze": ("found = Unsqueeze(x, first)", "y = Squeeze(found, first)"),
    "compress": (SHAPE, "chosen = Expand(always, shape)", "y = Compress<axis = 0>(x, chosen)"),
    "resize-nearest": (
        IMAGE,
        'found = Resize<mode = "nearest">(image, , unscaled)',
        INTO_ROW,
    ),
    "if": (
        "y = If(taken) <then_branch = same () => ({type}[n] kept) {{ kept = Identity(x) }},"
        " else_branch = blank () => ({type}[n] lost) {{ lost = Sub(x, x) }}>",
    ),
    "loop": (
        "y = Loop(step, taken, x) <body = once (int64 number, bool goes, {type}[n] before)"
        " => (bool still, {type}[n] after) {{ still = Identity(goes) after = Identity(before) }}>",
    ),
    "scan": (
        "batch = Unsqueeze(x, first)",
        "found = Scan<num_scan_inputs = 1, body = each ({type}[n] given) => ({type}[n] kept)"
        " {{ kept = Identity(given) }}>(batch)",
        INTO_ROW,
    ),
    "sequence": ("listed = SequenceConstruct(x)", "y = SequenceAt(listed, start)"),
    "optional": ("wrapped = Optional(x)", "y = OptionalGetElement(wrapped)"),
    # A Cast beside the operator.
    "cast-identity": (NARROW, "y = Identity(narrow)"),
    "cast-reshape": ("narrow = Cast<to = {target}>(x)", "y = Reshape(narrow, to_row)"),
    "cast-concatenate": (NARROW, "y = Concat<axis = 0>(narrow)"),
    "cast-multiply-by-one": (NARROW, "y = Mul(narrow, one_of_target)"),
    "cast-subtract-zero": (NARROW, "y = Sub(narrow, zero_of_target)"),
    "identity-cast": ("moved = Identity(x)", "y = Cast<to = {target}>(moved)"),
    "multiply-by-one-cast": ("moved = Mul(x, one)", "y = Cast<to = {target}>(moved)"),
    # A narrower dtype between two of Cast.
    "through-float16": (HALF, "y = Cast<to = {target}>(half)"),
    "through-float16-identity": (HALF, "through = Identity(half)", WIDEN),
    "through-float16-multiply-by-one": (HALF, "through = Mul(half, one_half)", WIDEN),
    "through-float16-subtract-zero": (HALF, "through = Sub(half, zero_half)", WIDEN),
    "through-float16-negate-twice": (HALF, "minus = Neg(half)", "through = Neg(minus)", WIDEN),
    "through-float16-maximum-with-itself": (HALF, "through = Max(half, half)", WIDEN),
    "through-float16-leaky-relu-by-one": (HALF, "through = LeakyRelu<alpha = 1.0>(half)", WIDEN),
    "through-float16-tile": (HALF, "through = Tile(half, single_one)", WIDEN),
    "through-float16-where": (HALF, "through = Where(always, half, zero_half)", WIDEN),
    "through-float16-reshape": (HALF, "through = Reshape(half, to_row)", WIDEN),
    "through-bfloat16": (BRAIN, "y = Cast<to = {target}>(brain)"),
    "through-bfloat16-identity": (BRAIN, "through = Identity(brain)", WIDEN),
    "through-bfloat16-multiply-by-one": (BRAIN, "through = Mul(brain, one_brain)", WIDEN),
    "through-bfloat16-reshape": (BRAIN, "through = Reshape(brain, to_row)", WIDEN),
    "through-float32": (SINGLE, "y = Cast<to = {target}>(single)"),
    "through-float32-multiply-by-one": (SINGLE, "through = Mul(single, one_single)", WIDEN),
}

CONSTANTS: Mapping[str, str] = {
    "zero": "{type}[1] zero = {{0}}",
    "one": "{type}[1] one = {{{one}}}",
    "one_by_one": "{type}[1, 1] one_by_one = {{{one}}}",
    "kernel": "{type}[1, 1, 1] kernel = {{{one}}}",
    "zero_of_target": "{target_type}[1] zero_of_target = {{0}}",
    "one_of_target": "{target_type}[1] one_of_target = {{{one_of_target}}}",
    "byte": "{target_type}[1] byte = {{255}}",
    "zero_half": "float16[1] zero_half = {{0}}",
    "one_half": "float16[1] one_half = {{15360}}",
    "one_brain": "bfloat16[1] one_brain = {{16256}}",
    "one_single": "float[1] one_single = {{1}}",
    "always": "bool[1] always = {{1}}",
    "taken": "bool taken = {{1}}",
    "unscaled": "float[3] unscaled = {{1, 1, 1}}",
    "start": "int64 start = {{0}}",
    "step": "int64 step = {{1}}",
    "first": "int64[1] first = {{0}}",
    "second": "int64[1] second = {{1}}",
    "last": "int64[1] last = {{-1}}",
    "end": "int64[1] end = {{9223372036854775807}}",
    "before_first": "int64[1] before_first = {{-9223372036854775807}}",
    "backward": "int64[1] backward = {{-1}}",
    "second_axis": "int64[1] second_axis = {{1}}",
    "single_one": "int64[1] single_one = {{1}}",
    "ends": "int64[2] ends = {{1, 1}}",
    "to_row": "int64[1] to_row = {{-1}}",
    "to_column": "int64[2] to_column = {{-1, 1}}",
    "to_image": "int64[3] to_image = {{1, 1, -1}}",
    "to_sequence": "int64[3] to_sequence = {{1, -1, 1}}",
    "to_heads": "int64[4] to_heads = {{-1, 1, 1, 1}}",
}

ONES: Mapping[str, int] = {"float16": 0x3C00, "bfloat16": 0x3F80}
"""The codes of one where the text format writes codes; it writes the values of other dtypes."""
WORD = re.compile(r"\w+")
NUMBERED = ("float16", "bfloat16", "float32")


class CarrierModels:
    """Builds the model of a carrier, with the builder of an onnx package.

    Its methods raise Unsupported for a carrier that the table lacks, and a dtype that onnx lacks.
    """

    def __init__(self, models: ModelBuilder) -> None:
        self._models = models
        self._text = lru_cache(None)(self._written)

    def text(self, case: Case, length: int | None = None, *, has_input: bool = True) -> str:
        """Return a case's model in ONNX's text format; without a ``length`` rows may have any.

        If ``has_input`` is false, x must be added as an initializer.
        """
        return self._text(case, length, has_input)

    def with_input(self, case: Case, length: int | None = None) -> Any:
        """Return the model of a case whose x is an input of that length."""
        return self._models.parsed(self.text(case, length))

    def with_constant(self, case: Case, bits: Bits, content: bytes | list[bytes]) -> Any:
        """Return the model of a case whose x is an initializer of the shape of ``bits``."""
        model = self._models.parsed(self.text(case, bits.size, has_input=False))
        model.graph.initializer.append(self._models.tensor("x", case.source, bits.shape, content))
        return model

    def statement(self, case: Case, length: int | None, *, has_input: bool = True) -> str:
        """Return the statement that binds a script's ``model``; ``text`` says what it is."""
        return parse_statement(self.text(case, length, has_input=has_input))

    def _written(self, case: Case, length: int | None, has_input: bool) -> str:
        carrier = case.mode.get(CARRIER, "")
        if carrier not in NODES:
            raise Unsupported(f"ONNX has no carrier {carrier}")
        number_of = self._models.element_type
        values: dict[str, str | int] = {
            "type": DTYPES.get(case.source, case.source),
            "target_type": DTYPES.get(case.target, case.target),
            "source": number_of(case.source),
            "target": number_of(case.target),
            "one": ONES.get(case.source, 1),
            "one_of_target": ONES.get(case.target, 1),
        }
        values |= {dtype: number_of(dtype) for dtype in NUMBERED}
        nodes = [node.format(**values) for node in NODES[carrier]]
        words = {word for node in nodes for word in WORD.findall(node)}
        used = [text.format(**values) for name, text in CONSTANTS.items() if name in words]
        shape = f"[{'n' if length is None else length}]"
        x, y = typed(case.source, shape, "x"), typed(case.target, shape, "y")
        constants = f"\n<{', '.join(used)}>" if used else ""
        opset = int(case.version) if case.document == DOCUMENT else LATEST
        return (
            self._models.head(opset)
            + f"carrier ({x if has_input else ''}) => ({y}){constants} {{\n  "
            + "\n  ".join(nodes)
            + "\n}"
        )
