"""How the documents' calls are dispatched: to which dtype, and whether a copy is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from specs.calls import Argument, Call, ReceiverKind

DEVICES: Mapping[str, str] = {"cpu": "cpu", "gpu": "gpu"}
CUDA_DEVICES: Mapping[str, str] = {"cpu": "cpu", "cuda": "gpu", "cuda:1": "gpu"}
"""The names of devices in paddle's documents and in torch's, with the kind of each."""
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


def decide(document: str, call: Call) -> Decision:
    """What a document says that a call asks for, or a refusal."""
    return DISPATCHES[document, call.receiver](call.args, dict(call.kwargs))


Arguments = tuple[Argument, ...]
Keywords = dict[str, Argument]
Signatures = Mapping[str, tuple[str, ...]]
"""Parameters in order, by what stands first among them."""

PADDLE_TO: Signatures = {
    "dtype": ("dtype", "blocking"),
    "device": ("device", "dtype", "blocking"),
    "other": ("other", "blocking"),
}
TORCH_TO: Signatures = {
    "dtype": ("dtype", "non_blocking", "copy", "memory_format"),
    "device": ("device", "dtype", "non_blocking", "copy", "memory_format"),
    "other": ("other", "non_blocking", "copy"),
}
TRUE, NONE = Argument("word", "true"), Argument("word", "none")


def _paddle_to(args: Arguments, kwargs: Keywords) -> Decision:
    return _to(PADDLE_TO, DEVICES, args, kwargs)


def _torch_to(args: Arguments, kwargs: Keywords) -> Decision:
    for argument in (*args, *kwargs.values()):
        if argument.kind == "dtype-name":
            raise RefusedError(f"the text `{argument.value}` is no dtype")
    return _to(TORCH_TO, CUDA_DEVICES, args, kwargs)


def _to(
    signatures: Signatures, devices: Mapping[str, str], args: Arguments, kwargs: Keywords
) -> Decision:
    """Bind the arguments to the signature that their first one chooses."""
    if not args:
        # `device` comes before the others: its signature has a `dtype` as well.
        first = next((role for role in ("device", "dtype", "other") if role in kwargs), "device")
    else:
        first = "device" if args[0] == NONE else _role(args[0], devices)
    if first not in signatures:
        raise RefusedError(f"to() has no form that begins with an argument `{first}`")
    given = _bound("to", signatures[first], args, kwargs)
    for name in ("device", "dtype", "other"):
        if name in given and given[name] != NONE and _role(given[name], devices) != name:
            raise RefusedError(f"`{given[name].value}` is no {name}")
    copies = given.get("copy") == TRUE
    other = given.get("other")
    if other is not None:
        return Decision(_value(other), "gpu" if other.kind == "gpu-tensor" else "cpu", copies)
    device = _value(given.get("device"))
    return Decision(_value(given.get("dtype")), devices[device] if device else None, copies)


def _bound(
    method: str, parameters: tuple[str, ...], args: Arguments, kwargs: Keywords
) -> dict[str, Argument]:
    """The arguments by their parameters' names, as Python binds them."""
    if len(args) > len(parameters):
        raise RefusedError(f"{method}() takes at most {len(parameters)} arguments of this form")
    given = dict(zip(parameters, args, strict=False))
    for name in kwargs:
        if name not in parameters:
            raise RefusedError(f"{method}() has no parameter `{name}` beside `{parameters[0]}`")
        if name in given:
            raise RefusedError(f"{method}() is given `{name}` twice")
    return given | kwargs


def _value(argument: Argument | None) -> str | None:
    return None if argument is None or argument == NONE else argument.value


def _role(argument: Argument, devices: Mapping[str, str] = DEVICES) -> str:
    """Which parameter an argument can be."""
    match argument:
        case Argument("dtype-name", value) if value in NAMES:
            return "dtype"
        case Argument("device-name" | "device", value) if value in devices:
            return "device"
        case Argument("dtype"):
            return "dtype"
        case Argument("tensor" | "gpu-tensor"):
            return "other"
        case Argument("input"):
            return "input"
    raise RefusedError(f"`{argument.value}` is neither dtype nor device nor tensor")


def _one_dtype(method: str, args: Arguments, kwargs: Keywords) -> Decision:
    given = _bound(method, ("dst_type",), args, kwargs)
    if "dst_type" not in given:
        raise RefusedError(f"{method}() takes one argument, dst_type")
    if _role(given["dst_type"]) != "dtype":
        raise RefusedError(f"`{given['dst_type'].value}` is no dtype")
    return Decision(given["dst_type"].value)


def _layer_astype(args: Arguments, kwargs: Keywords) -> Decision:
    return _one_dtype("astype", args, kwargs)


def _module_type(args: Arguments, kwargs: Keywords) -> Decision:
    return _one_dtype("type", args, kwargs)


def _sharded_to(args: Arguments, kwargs: Keywords) -> Decision:
    """As the quoted branches go: keywords count only where nothing stands before them."""
    copies = kwargs.get("copy") == TRUE
    match args:
        case [Argument("dtype" | "tensor", dtype)]:
            return Decision(dtype, copies=copies)
        case [Argument("device" | "device-name" | "dtype-name", text)] if text in CUDA_DEVICES:
            return Decision(device=_moved(text), copies=copies)
        case [Argument(_, value)]:
            raise RefusedError(f"`{value}` is neither dtype nor device nor tensor")
        case [Argument("device" | "device-name", text), Argument("dtype", dtype)]:
            return Decision(dtype, _moved(text), copies)
        case [Argument(_, value), _]:
            raise RefusedError(f"`{value}` is no device: it has no `type`")
    said, device = kwargs.get("dtype"), kwargs.get("device")
    if said is not None and said.kind != "dtype" and said != NONE:
        raise RefusedError(f"`{said.value}` is no dtype")
    if device is not None and device.kind not in ("device", "device-name"):
        raise RefusedError(f"`{device.value}` is no device: it has no `type`")
    return Decision(_value(said), _moved(device.value) if device else None, copies)


def _moved(device: str) -> str | None:
    """Where a tensor on the CPU is moved to, if anywhere; all GPUs are the current one."""
    return "gpu" if CUDA_DEVICES.get(device) == "gpu" else None


def _cinn_cast(args: Arguments, kwargs: Keywords) -> Decision:
    return _built("cast", ("A", "dtype", "name"), args, kwargs)


def _cinn_bitcast_convert(args: Arguments, kwargs: Keywords) -> Decision:
    return _built("bitcast_convert", ("A", "dytpe"), args, kwargs)


def _built(method: str, parameters: tuple[str, ...], args: Arguments, kwargs: Keywords) -> Decision:
    """A builder's operator: its first parameter is the tensor, its second one the dtype."""
    given = _bound(method, parameters, args, kwargs)
    tensor, dtype, *_ = parameters
    for name, role in ((tensor, "input"), (dtype, "dtype")):
        if name not in given:
            raise RefusedError(f"{method}() lacks its argument `{name}`")
        if _role(given[name]) != role:
            raise RefusedError(f"`{given[name].value}` is no `{name}`")
    return Decision(given[dtype].value)


DISPATCHES: Mapping[tuple[str, ReceiverKind], Callable[[Arguments, Keywords], Decision]] = {
    ("paddle-tensor-to", "tensor"): _paddle_to,
    ("paddle-layer-astype", "layer"): _layer_astype,
    ("paddle-layer-astype", "linear"): _layer_astype,
    ("torch-tensor-to", "sharded-tensor"): _sharded_to,
    ("torch-tensor-to", "tensor"): _torch_to,
    ("torch-module-type", "layer"): _module_type,
    ("cinn-cast-calls", "net-builder"): _cinn_cast,
    ("cinn-cast-calls", "base-builder"): _cinn_cast,
    ("cinn-bitcast-calls", "net-builder"): _cinn_bitcast_convert,
}
