"""Chains of casts by torch: ``x.to(b).to(c)``, eager or in one compiled function.

inductor may keep more precision than a dtype on the way has; with ``emulate_precision_casts`` it
rounds there. Both are roads of ``torch:compile``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from oracles.adapters.torch_compile import with_own_code

EAGER, COMPILED = "eager", "compiled"
EMULATED = f"{COMPILED},emulate_precision_casts:on"


def chain_roads(variant: str | None) -> tuple[str, ...]:
    """The roads of a variant of the backend; the first is the one that users get by default."""
    match variant:
        case "compile":
            return COMPILED, EMULATED
        case "view" | "decomposed":
            return ()
    return (EAGER,)


def ends_of(
    torch: Any, road: str, paths: Sequence[Sequence[Any]], tensors: Sequence[Any]
) -> Sequence[Any]:
    """Cast each tensor along its path of dtypes, all in one function."""

    def casts(*given: Any) -> tuple[Any, ...]:
        return tuple(
            reduce(lambda x, dtype: x.to(dtype), path, own)
            for path, own in zip(paths, given, strict=True)
        )

    if road == EAGER:
        return casts(*tensors)
    options = {"emulate_precision_casts": True} if road == EMULATED else None
    compiled = torch.compile(with_own_code(casts), fullgraph=True, dynamic=True, options=options)
    ends: Sequence[Any] = compiled(*tensors)
    return ends


def chain_statement(road: str, dtypes: Sequence[str]) -> str:
    """The statement of a script that casts x along a path of dtypes, to y."""
    path = "x" + "".join(f".to(torch.{dtype})" for dtype in dtypes)
    if road == EAGER:
        return f"y = {path}\n"
    options = ', options={"emulate_precision_casts": True}' if road == EMULATED else ""
    return f"y = torch.compile(lambda x: {path}, dynamic=True{options})(x)\n"
