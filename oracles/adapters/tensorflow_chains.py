"""Chains of casts by TensorFlow: eager, in a ``tf.function``, or in one that XLA compiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any

EAGER = "eager"


def chain_roads(variant: str | None) -> tuple[str, ...]:
    """The only road of a variant, by which it also makes single casts; none if it folds."""
    return (variant or EAGER,) if variant in (None, "function", "xla") else ()


def ends_of(
    tensorflow: Any,
    options: Mapping[str, bool] | None,
    paths: Sequence[Sequence[Any]],
    tensors: Sequence[Any],
) -> Sequence[Any]:
    """Cast each tensor along its path of dtypes, all in one function if there are options."""

    def casts(*given: Any) -> tuple[Any, ...]:
        return tuple(
            reduce(tensorflow.cast, path, own) for path, own in zip(paths, given, strict=True)
        )

    if options is None:
        return casts(*tensors)
    ends: Sequence[Any] = tensorflow.function(casts, **options)(*tensors)
    return ends


def chain_statement(options: Mapping[str, bool] | None, dtypes: Sequence[str]) -> str:
    """The statement of a script that casts x along a path of dtypes, to y."""
    path = "x"
    for dtype in dtypes:
        path = f'tf.cast({path}, "{dtype}")'
    if options is None:
        return f"y = {path}\n"
    words = ", ".join(f"{name}={value}" for name, value in options.items())
    return f"y = tf.function(lambda x: {path}, {words})(x)\n"
