"""How the documents' calls are dispatched: to which dtype, and whether a copy is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from specs.calls import Argument, Call

DEVICES = ("cpu", "gpu")
NAMES = (
    "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "complex64", "complex128", "bool",
)  # fmt: skip
"""The names of dtypes that paddle's design lists."""


@dataclass(frozen=True)
class Decision:
    """The dtype and device that tensors take (None: their own), and whether a copy must be made."""

    dtype: str | None = None
    device: str | None = None
    copies: bool = False


class RefusedError(TypeError):
    """The arguments are none of the forms that the document has."""


def decide(call: Call) -> Decision:
    """What a call asks for, or a refusal."""
    dispatch = DISPATCHES[call.receiver, call.method]
    return dispatch(call.args, dict(call.kwargs))


Arguments = tuple[Argument, ...]
Keywords = dict[str, Argument]
FORMS: Mapping[str, tuple[str, ...]] = {
    "dtype": ("dtype", "blocking"),
    "device": ("device", "dtype", "blocking"),
    "other": ("other", "blocking"),
}
"""The three forms of paddle's ``to``, by what stands first, with their parameters in order."""


def _paddle_to(args: Arguments, kwargs: Keywords) -> Decision:
    first = _role(args[0]) if args else next((role for role in FORMS if role in kwargs), "device")
    parameters = FORMS["device" if not args and "device" in kwargs else first]
    if len(args) > len(parameters):
        raise RefusedError(f"to() takes at most {len(parameters)} arguments of this form")
    given = dict(zip(parameters, args, strict=False)) | kwargs
    for name in given:
        if name not in parameters:
            raise RefusedError(f"to() has no parameter `{name}` beside `{first}`")
    for name in ("device", "dtype", "other"):
        if name in given and given[name].value != "none" and _role(given[name]) != name:
            raise RefusedError(f"`{given[name].value}` is no {name}")
    said = given.get("other", given.get("dtype"))
    # Another tensor is on the CPU, where all arguments are.
    return Decision(_value(said), "cpu" if "other" in given else _value(given.get("device")))


def _value(argument: Argument | None) -> str | None:
    return None if argument is None or argument.value == "none" else argument.value


def _role(argument: Argument) -> str:
    """Which parameter an argument can be."""
    match argument:
        case Argument("dtype-name", value) if value in NAMES:
            return "dtype"
        case Argument("device-name", value) if value in DEVICES:
            return "device"
        case Argument("dtype"):
            return "dtype"
        case Argument("device"):
            return "device"
        case Argument("tensor"):
            return "other"
    raise RefusedError(f"`{argument.value}` is neither dtype nor device nor tensor")


def _one_dtype(method: str, args: Arguments, kwargs: Keywords) -> Decision:
    given = [*args, *(value for name, value in kwargs.items() if name == "dst_type")]
    if len(given) != 1 or len(given) != len(args) + len(kwargs):
        raise RefusedError(f"{method}() takes one argument, dst_type")
    if _role(given[0]) != "dtype":
        raise RefusedError(f"`{given[0].value}` is no dtype")
    return Decision(given[0].value)


def _layer_astype(args: Arguments, kwargs: Keywords) -> Decision:
    return _one_dtype("astype", args, kwargs)


def _module_type(args: Arguments, kwargs: Keywords) -> Decision:
    return _one_dtype("type", args, kwargs)


def _sharded_to(args: Arguments, kwargs: Keywords) -> Decision:
    """As the quoted branches go: keywords count only where nothing stands before them."""
    copies = kwargs.get("copy") == Argument("word", "true")
    match args:
        case [Argument("dtype" | "tensor", dtype)]:
            return Decision(dtype, copies=copies)
        case [Argument("device")]:
            return Decision(copies=copies)
        case [Argument("device-name" | "dtype-name", text)] if text in DEVICES:
            return Decision(copies=copies)
        case [Argument(_, value)]:
            raise RefusedError(f"`{value}` is neither dtype nor device nor tensor")
        case [_, Argument("dtype", dtype)]:
            return Decision(dtype, copies=copies)
    said = kwargs.get("dtype")
    if said is not None and said.kind != "dtype" and said.value != "none":
        raise RefusedError(f"`{said.value}` is no dtype")
    return Decision(_value(said), copies=copies)


DISPATCHES: Mapping[tuple[str, str], Callable[[Arguments, Keywords], Decision]] = {
    ("tensor", "to"): _paddle_to,
    ("layer", "astype"): _layer_astype,
    ("sharded-tensor", "to"): _sharded_to,
    ("layer", "type"): _module_type,
}
