"""Makes a call as its document defines it: decides the dtype, device and memory of the result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np

from oracles.protocol import Bits, Returned, Tensor
from specs.case_calls import case_of_member, member_of
from specs.cases import Argument, Call, Case, Member, ReceiverKind
from specs.formats import format_named

LAYERS: tuple[ReceiverKind, ...] = ("layer", "linear")
BUILDERS: tuple[ReceiverKind, ...] = ("net-builder", "base-builder")

DEVICES: Mapping[str, str] = {"cpu": "cpu", "gpu": "gpu"}
CUDA_DEVICES: Mapping[str, str] = {"cpu": "cpu", "cuda": "gpu", "cuda:1": "gpu"}
"""By device name: the kind of device. ``DEVICES`` is for paddle's documents, this for torch's."""
DTYPE_NAMES = (
    "bfloat16", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
    "uint16", "complex64", "complex128", "bool",
)  # fmt: skip
"""The dtype names that paddle's design lists."""


@dataclass(frozen=True)
class Decision:
    """The dtype and device of a call's result (None: unchanged), and whether it must be a copy."""

    dtype: str | None = None
    device: str | None = None
    copies: bool = False


class RefusedError(TypeError):
    """A call's arguments match none of the document's signatures."""


def decide(document: str, call: Call) -> Decision:
    """Decide a call by a document in ``DISPATCHES``; raise RefusedError if no signature matches."""
    return DISPATCHES[document, call.receiver](call.args, dict(call.kwargs))


def make_call(
    cast: Callable[[Case, Bits], Bits], case: Case, call: Call, bits: Mapping[str, Bits]
) -> Returned:
    """Make a call as its document defines it; a layer is returned itself, changed.

    ``cast`` converts a member by the case of that member. Raises RefusedError if the arguments
    match no signature of the method, and what ``cast`` raises.
    """
    decision = decide(case.document, call) if call.method is not None else Decision()
    device = decision.device or call.device
    dtypes = {member.name: decision.dtype or member.dtype for member in call.members}
    converted = {
        member.name: Tensor(
            dtypes[member.name],
            device,
            _converted(cast, case, member, dtypes[member.name], bits[member.name]),
        )
        for member in call.members
    }
    unchanged = device == call.device and all(
        member.dtype == dtypes[member.name] for member in call.members
    )
    in_place = call.receiver in LAYERS or (
        unchanged and not decision.copies and call.receiver not in BUILDERS
    )
    before = {
        member.name: Tensor(member.dtype, call.device, bits[member.name]) for member in call.members
    }
    # If a call returns the tensor itself, even the values stay that its document leaves open.
    tensors = before if in_place and call.receiver not in LAYERS else converted
    # For an input of ones, a layer's output is a placeholder: a zero of the dtype of its weight.
    outputs = {
        dtype: Tensor(
            dtypes["weight"], "cpu", np.zeros((1, 1), format_named(dtypes["weight"]).storage)
        )
        for dtype in call.inputs
    }
    return Returned(in_place, in_place, tensors, tensors if in_place else before, outputs)


def _converted(
    cast: Callable[[Case, Bits], Bits], case: Case, member: Member, dtype: str, bits: Bits
) -> Bits:
    """Cast a member to ``dtype`` by the case of that member; copy it if it has the dtype.

    Returns zeros if ``dtype`` is not the target of that case: then the document fixes no values.
    """
    of_member = case
    if member.name != member_of(case):
        of_member = case_of_member(case, member.name, member.dtype)
    if (member.dtype, dtype) == (of_member.source, of_member.target):
        return cast(of_member, bits)
    if member.dtype == dtype:
        return bits.copy()
    return np.zeros(bits.shape, format_named(dtype).storage)


Arguments = tuple[Argument, ...]
Keywords = dict[str, Argument]
Signatures = Mapping[str, tuple[str, ...]]
"""By role of the first parameter: the names of a signature's parameters, in order."""

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
CINN_CAST = ("A", "dtype", "name")
TRUE, FALSE, NONE = (Argument("word", word) for word in ("true", "false", "none"))


def _torch_to(args: Arguments, kwargs: Keywords) -> Decision:
    for argument in (*args, *kwargs.values()):
        if argument.kind == "dtype-name":
            raise RefusedError(f"the text `{argument.value}` is no dtype")
    return _to(TORCH_TO, CUDA_DEVICES, args, kwargs)


def _to(
    signatures: Signatures, devices: Mapping[str, str], args: Arguments, kwargs: Keywords
) -> Decision:
    """Decide a call of ``to`` by the signature that its first argument selects.

    ``devices`` has the device names that are allowed. Raises RefusedError if no signature matches.
    """
    if not args:
        # `device` is tried first: its signature has a `dtype` too.
        first = next((role for role in ("device", "dtype", "other") if role in kwargs), "device")
    else:
        first = "device" if args[0] == NONE else _role(args[0], devices)
    if first not in signatures:
        raise RefusedError(f"to() has no form that begins with an argument `{first}`")
    bound = _bind("to", signatures[first], args, kwargs)
    for name in ("device", "dtype", "other"):
        if name in bound and bound[name] != NONE and _role(bound[name], devices) != name:
            raise RefusedError(f"`{bound[name].value}` is no {name}")
    copies = bound.get("copy") == TRUE
    other = bound.get("other")
    if other is not None:
        return Decision(_value(other), "gpu" if other.kind == "gpu-tensor" else "cpu", copies)
    device = _value(bound.get("device"))
    return Decision(_value(bound.get("dtype")), devices[device] if device else None, copies)


def _bind(
    method: str, parameters: tuple[str, ...], args: Arguments, kwargs: Keywords
) -> dict[str, Argument]:
    """Return arguments by parameter name, bound as in Python; raise RefusedError if that fails."""
    if len(args) > len(parameters):
        raise RefusedError(f"{method}() takes at most {len(parameters)} arguments of this form")
    bound = dict(zip(parameters, args, strict=False))
    for name in kwargs:
        if name not in parameters:
            raise RefusedError(f"{method}() has no parameter `{name}` beside `{parameters[0]}`")
        if name in bound:
            raise RefusedError(f"{method}() is given `{name}` twice")
    return bound | kwargs


def _value(argument: Argument | None) -> str | None:
    return None if argument is None or argument == NONE else argument.value


def _role(argument: Argument, devices: Mapping[str, str] = DEVICES) -> str:
    """Return an argument's role: `dtype`, `device`, `other` (a tensor) or `input`.

    Raises RefusedError for an argument of no role.
    """
    match argument:
        case Argument("dtype-name", value) if value in DTYPE_NAMES:
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
    bound = _bind(method, ("dst_type",), args, kwargs)
    if "dst_type" not in bound:
        raise RefusedError(f"{method}() takes one argument, dst_type")
    if _role(bound["dst_type"]) != "dtype":
        raise RefusedError(f"`{bound['dst_type'].value}` is no dtype")
    return Decision(bound["dst_type"].value)


def _array_api_astype(args: Arguments, kwargs: Keywords) -> Decision:
    bound = _bind("astype", ("dtype",), args, {}) | kwargs
    if set(bound) - {"dtype", "copy", "device"} or _role(bound["dtype"]) != "dtype":
        raise RefusedError("astype() takes a dtype, and the keywords copy and device")
    return Decision(bound["dtype"].value, copies=bound.get("copy") != FALSE)


def _sharded_to(args: Arguments, kwargs: Keywords) -> Decision:
    """Decide a call of ``ShardedTensor.to`` as its document quotes the code.

    With one or two positional arguments, every keyword but ``copy`` is ignored; more than two are
    ignored themselves. Raises RefusedError if no signature matches.
    """
    copies = kwargs.get("copy") == TRUE
    match args:
        case [Argument("dtype" | "tensor", dtype)]:
            return Decision(dtype, copies=copies)
        case [Argument("device" | "device-name" | "dtype-name", text)] if text in CUDA_DEVICES:
            return Decision(device=_target_device(text), copies=copies)
        case [Argument(_, value)]:
            raise RefusedError(f"`{value}` is neither dtype nor device nor tensor")
        case [Argument("device" | "device-name", text), Argument("dtype", dtype)]:
            return Decision(dtype, _target_device(text), copies)
        case [Argument(_, value), _]:
            raise RefusedError(f"`{value}` is no device: it has no `type`")
    new_dtype, device = kwargs.get("dtype"), kwargs.get("device")
    if new_dtype is not None and new_dtype.kind != "dtype" and new_dtype != NONE:
        raise RefusedError(f"`{new_dtype.value}` is no dtype")
    if device is not None and device.kind not in ("device", "device-name"):
        raise RefusedError(f"`{device.value}` is no device: it has no `type`")
    return Decision(_value(new_dtype), _target_device(device.value) if device else None, copies)


def _target_device(device: str) -> str | None:
    """Return "gpu" if a tensor on the CPU moves to a GPU by this device name; None if it stays."""
    return "gpu" if CUDA_DEVICES.get(device) == "gpu" else None


def _builder_call(
    method: str, parameters: tuple[str, ...], args: Arguments, kwargs: Keywords
) -> Decision:
    """Decide a call of a builder's method, whose first two parameters are tensor and dtype.

    Raises RefusedError as ``_bind`` does, and if one of the two is missing or is of another kind.
    """
    bound = _bind(method, parameters, args, kwargs)
    tensor, dtype, *_ = parameters
    for name, role in ((tensor, "input"), (dtype, "dtype")):
        if name not in bound:
            raise RefusedError(f"{method}() lacks its argument `{name}`")
        if _role(bound[name]) != role:
            raise RefusedError(f"`{bound[name].value}` is no `{name}`")
    return Decision(bound[dtype].value)


DISPATCHES: Mapping[tuple[str, ReceiverKind], Callable[[Arguments, Keywords], Decision]] = {
    ("paddle-tensor-to", "tensor"): partial(_to, PADDLE_TO, DEVICES),
    ("paddle-layer-astype", "layer"): partial(_one_dtype, "astype"),
    ("paddle-layer-astype", "linear"): partial(_one_dtype, "astype"),
    ("torch-sharded-tensor-to", "sharded-tensor"): _sharded_to,
    ("torch-sharded-tensor-to", "tensor"): _torch_to,
    ("torch-tensor-to", "tensor"): _torch_to,
    ("torch-module-type", "layer"): partial(_one_dtype, "type"),
    ("array-api-astype-calls", "tensor"): _array_api_astype,
    ("cinn-cast-calls", "net-builder"): partial(_builder_call, "cast", CINN_CAST),
    ("cinn-cast-calls", "base-builder"): partial(_builder_call, "cast", CINN_CAST),
    # The document itself spells the parameter `dytpe`.
    ("cinn-bitcast-calls", "net-builder"): partial(
        _builder_call, "bitcast_convert", ("A", "dytpe")
    ),
}
