"""Chains of casts by jax: eager, or in one function that XLA compiles.

XLA may keep more precision than a dtype on the way has, which its option
``xla_allow_excess_precision`` forbids. Both are roads of ``jax:jit``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

EAGER, COMPILED = "eager", "jit"
EXACT = f"{COMPILED},xla_allow_excess_precision:off"
OPTION = "xla_allow_excess_precision"


def chain_roads(variant: str | None) -> tuple[str, ...]:
    """The roads of a variant of the backend; the first is the one that users get by default."""
    match variant:
        case None:
            return (EAGER,)
        case "jit":
            return COMPILED, EXACT
    return ()


def ends_of(
    jax: Any, road: str, paths: Sequence[Sequence[Any]], arrays: Sequence[Any]
) -> Sequence[Any]:
    """Convert each array along its path of dtypes, all in one function."""

    def casts(*given: Any) -> tuple[Any, ...]:
        return tuple(
            reduce(jax.lax.convert_element_type, path, own)
            for path, own in zip(paths, given, strict=True)
        )

    if road == EAGER:
        return casts(*arrays)
    options = {OPTION: False} if road == EXACT else None
    ends: Sequence[Any] = jax.jit(casts).lower(*arrays).compile(compiler_options=options)(*arrays)
    return ends


def chain_statement(road: str, dtypes: Sequence[str]) -> str:
    """The statement of a script that casts x along a path of dtypes, to y."""
    path = "x"
    for dtype in dtypes:
        path = f"jax.lax.convert_element_type({path}, jnp.{dtype})"
    if road == EAGER:
        return f"y = {path}\n"
    function = f"chain = jax.jit(lambda x: {path})\n"
    if road == EXACT:
        options = f'{{"{OPTION}": False}}'
        return f"{function}y = chain.lower(x).compile(compiler_options={options})(x)\n"
    return f"{function}y = chain(x)\n"
