"""The readers of checkpoints: whole files of each format, and broken ones."""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from conformance.extras.checkpoints import onnx_file, stored_tensors
from conformance.extras.checkpoints.opening import open_checkpoint
from conformance.extras.checkpoints.stored_tensors import StoredTensor
from specs.errors import CastigateError
from tests.conformance.extras.checkpoints.files import (
    Array,
    gguf_bytes,
    safetensors_bytes,
    weights,
    write_safetensors,
)

SMALL_CHUNK = 40


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (stored_tensors, onnx_file):
        monkeypatch.setattr(module, "CHUNK_BYTES", SMALL_CHUNK)


def elements(tensor: StoredTensor) -> Array:
    """All elements in the file's order; chunks share a buffer, so each is copied."""
    chunks = [chunk.copy() for chunk in tensor.chunks()]
    assert all(chunk.nbytes <= SMALL_CHUNK for chunk in chunks)
    return (
        np.concatenate([np.empty(0, np.uint8), *chunks]) if not chunks else np.concatenate(chunks)
    )


def assert_holds(path: Path, tensors: dict[str, Array]) -> None:
    found = {each.name: each for each in open_checkpoint(path).floats}
    assert {*found} == {*tensors}
    for name, array in tensors.items():
        each = found[name]
        assert (each.dtype, each.shape) == (array.dtype.name, array.shape)
        order: Any = "F" if each.is_column_major else "C"
        patterns = array.ravel(order).view(f"uint{8 * array.itemsize}")
        assert np.array_equal(elements(each), patterns), name
        assert each.bytes == array.nbytes
        for at in range(0, array.size, 7):
            assert array.view(patterns.dtype)[each.place(at)] == patterns[at]


MIXED = {
    "a.b": weights("float32", 30).reshape(-1, 1),
    "half": weights("float16", 21)[:54].reshape(2, 3, 9),
    "brain": weights("bfloat16", 10),
    "double": weights("float64", 5),
    "scalar": np.array(1.5, np.float32),
    "none": np.zeros((0, 4), np.float16),
}


def test_safetensors(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", MIXED | {"ids": np.arange(3)})
    assert_holds(path, MIXED)
    assert open_checkpoint(path).others == (("ids", "I64"),)


def test_what_the_safetensors_library_writes(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    own = {name: each for name, each in MIXED.items() if name != "brain"}
    library.save_file(own, tmp_path / "m.safetensors")
    assert_holds(tmp_path / "m.safetensors", own)


def test_the_safetensors_library_reads_what_these_tests_write(tmp_path: Path) -> None:
    library = pytest.importorskip("safetensors.numpy")
    own = {name: each for name, each in MIXED.items() if name != "brain"}
    found = library.load_file(write_safetensors(tmp_path / "m.safetensors", own))
    assert all(found[name].tobytes() == each.tobytes() for name, each in own.items())


def test_an_index_and_a_folder(tmp_path: Path) -> None:
    one, two = {"a": weights("float32", 9)}, {"b": weights("bfloat16", 9)}
    write_safetensors(tmp_path / "model-1.safetensors", one)
    write_safetensors(tmp_path / "model-2.safetensors", two)
    assert_holds(tmp_path, one | two)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "model-1.safetensors"}}))
    assert_holds(index, one)
    assert_holds(tmp_path, one)


@pytest.mark.parametrize("alignment", [None, 8, 64])
@pytest.mark.parametrize("version", [2, 3])
def test_gguf(version: int, alignment: int | None, tmp_path: Path) -> None:
    own = {name: each for name, each in MIXED.items() if name != "none"}
    blocks = (12, (2, 256), bytes(288))
    data = gguf_bytes(own | {"blk.0": blocks, "new": (99, (4,), bytes(4))}, version, alignment)
    (tmp_path / "m.gguf").write_bytes(data)
    assert_holds(tmp_path / "m.gguf", own)
    others = open_checkpoint(tmp_path / "m.gguf").others
    assert others == (("blk.0", "Q4_K"), ("new", "type 99"))


def test_what_the_gguf_package_writes_and_calls_its_types(tmp_path: Path) -> None:
    gguf = pytest.importorskip("gguf")
    from conformance.extras.checkpoints.gguf_file import TYPES

    for kind in gguf.GGMLQuantizationType:
        assert TYPES[kind.value] == kind.name
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "llama")
    own = {name: MIXED[name] for name in ("a.b", "half")}
    for name, each in own.items():
        writer.add_tensor(name, each)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert_holds(tmp_path / "m.gguf", own)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(save: Callable[..., None], tmp_path: Path) -> None:
    own = {name: each for name, each in MIXED.items() if name != "brain"}
    own["columns"] = np.asfortranarray(weights("float32", 23)[:48].reshape(6, 8))
    save(tmp_path / "m.npz", **own, ids=np.arange(3))
    assert_holds(tmp_path / "m.npz", own)
    assert open_checkpoint(tmp_path / "m.npz").others == (("ids", "int64"),)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", ">f8", "<f2"])
def test_npy_in_any_byte_order(dtype: str, tmp_path: Path) -> None:
    array = weights("float16", 20).astype(dtype)
    np.save(tmp_path / "m.npy", array)
    assert_holds(tmp_path / "m.npy", {"m": array.astype(array.dtype.newbyteorder("="))})


def test_onnx_inside_and_in_another_file(tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    x = weights("float32", 20)
    own: dict[str, Array] = {"raw": x.reshape(-1, 1), "numbers": x[:5]}
    made = [
        numpy_helper.from_array(own["raw"], "raw"),
        helper.make_tensor("numbers", TensorProto.FLOAT, [5], x[:5].tolist()),
        numpy_helper.from_array(np.arange(3), "ids"),
    ]
    for name, kind, dtype in (
        ("brain", TensorProto.BFLOAT16, "bfloat16"),
        ("small", TensorProto.FLOAT8E5M2, "float8e5m2"),
        ("half", TensorProto.FLOAT16, "float16"),
    ):
        own[name] = weights(dtype, 6)
        patterns = own[name].view(f"uint{8 * own[name].itemsize}")
        tensor = TensorProto(name=name, data_type=kind, dims=[patterns.size])
        tensor.int32_data.extend(patterns.tolist())
        made.append(tensor)
    double = TensorProto(name="double", data_type=TensorProto.DOUBLE, dims=[2])
    double.double_data.extend([0.1, -3.0])
    made.append(double)
    own["double"] = np.array([0.1, -3.0])
    outside = TensorProto(name="outside", data_type=TensorProto.FLOAT, dims=[x.size])
    outside.data_location = TensorProto.EXTERNAL
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "w.bin").write_bytes(b"\0" * 12 + x.tobytes())
    for key, value in (("location", "data/w.bin"), ("offset", "12"), ("length", str(x.nbytes))):
        outside.external_data.add(key=key, value=value)
    own["outside"] = x
    graph = helper.make_graph([], "g", [], [], [*made, outside])
    path = tmp_path / "model.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    found = {each.name: each for each in open_checkpoint(path).floats}
    names = {"float8e5m2": "float8_e5m2"}
    assert {*found} == {*own}
    for name, array in own.items():
        assert names.get(found[name].dtype, found[name].dtype) == array.dtype.name
        assert elements(found[name]).tobytes() == array.tobytes(), name

    for key, value, says in (
        ("location", "../w.bin", "is no file beside or below the model"),
        ("location", "gone.bin", "is not there"),
        ("offset", "999999", "ends at byte"),
        ("offset", "-4", "malformed offset or length"),
        ("length", "8", "needs .* bytes for its shape"),
    ):
        model = onnx.load(path, load_external_data=False)
        [entry] = [e for e in model.graph.initializer[-1].external_data if e.key == key]
        entry.value = value
        (tmp_path / "bad.onnx").write_bytes(model.SerializeToString())
        with pytest.raises(CastigateError, match=says):
            open_checkpoint(tmp_path / "bad.onnx")
    os.mkfifo(tmp_path / "fifo")
    model = onnx.load(path, load_external_data=False)
    model.graph.initializer[-1].external_data[0].value = "fifo"
    (tmp_path / "bad.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(CastigateError, match="is a pipe or a device"):
        open_checkpoint(tmp_path / "bad.onnx")


def entry(shape: Any, *offsets: Any, dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


def archive(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        for name, data in members.items():
            made.writestr(name, data)
    return file.getvalue()


def npy(array: Array) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


WHOLE_GGUF = gguf_bytes({"x": np.ones(4, np.float32)})
TWICE = '{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "a": 1}'
BROKEN: dict[str, tuple[str, bytes, str]] = {
    "empty": ("m.safetensors", b"", "is empty; give a checkpoint in safetensors, GGUF"),
    "magic": ("m.dat", b"\x89HDF\r\n\x1a\n1234", "begins with the bytes 89 48 44 46 .* convert it"),
    "pickle": ("m.pt", pickle.dumps({"a": 1}), "is a pickle, .* safetensors.torch.save_file"),
    "torch": ("m.bin", archive({"x/data.pkl": b"", "x/data/0": b""}), "is a pickle, .* convert it"),
    "short": ("m.safetensors", b"\x08\0\0", "should have 8 bytes, and 0 follow"),
    "cut header": ("m.safetensors", (99).to_bytes(8, "little") + b"{}", "99 bytes, and 2 follow"),
    "long header": ("m.safetensors", (10**9).to_bytes(8, "little") + b"{", "above the 100,000,000"),
    "json": ("m.safetensors", safetensors_bytes("{]", b""), "its header is no JSON"),
    "deep": ("m.safetensors", safetensors_bytes('{"a":' + "[" * 99999, b""), "is no JSON"),
    "list": ("m.safetensors", safetensors_bytes("[]", b""), "is no JSON object"),
    "twice": ("m.safetensors", safetensors_bytes(TWICE, b"1234"), "`a` stands there twice"),
    "beyond": (
        "m.safetensors", safetensors_bytes({"a": entry([2], 0, 8)}, b"1234"),
        "tensor `a` ends at byte .* it was cut off",
    ),
    "overlap": (
        "m.safetensors",
        safetensors_bytes({"a": entry([2], 0, 8), "b": entry([1], 4, 8)}, b"12345678"),
        "tensors `a` and `b` overlap at byte",
    ),
    "size": (
        "m.safetensors", safetensors_bytes({"a": entry([3], 0, 8)}, b"12345678"),
        "`a` of F32 needs 12 bytes for its shape, and the header gives it 8",
    ),
    "backwards": ("m.safetensors", safetensors_bytes({"a": entry([0], 8, 4)}, b"1" * 8), "it -4"),
    "negative": (
        "m.safetensors", safetensors_bytes({"a": entry([-1], 0, 4)}, b"1234"),
        "`a`.`shape`.`0`: Input should be greater",
    ),
    "endless": (
        "m.safetensors", safetensors_bytes({"a": entry([2**62] * 999, 0, 4)}, b"1234"), "`shape`"
    ),
    "endless offset": (
        "m.safetensors", safetensors_bytes({"a": entry([1], 0, 10**4000)}, b"1234"), "data_offsets"
    ),
    "endless npy": (
        "m.npy",
        npy(np.ones(1)).replace(b"(1,)", b"(9" + b"9" * 99 + b",)").replace(b" " * 99, b"", 1),
        "has an impossible shape|is malformed",
    ),
    "bool": ("m.safetensors", safetensors_bytes({"a": entry([True], 0, 4)}, b"1234"), "integer"),
    "dtype": (
        "m.safetensors", safetensors_bytes({"a": entry([1], 0, 4, dtype=7)}, b"1234"), "string"
    ),
    "cut gguf": ("m.gguf", WHOLE_GGUF[:100], "ends inside of its header"),
    "cut gguf data": ("m.gguf", WHOLE_GGUF[:-1], "tensor `x` ends at byte .* it was cut off"),
    "version": ("m.gguf", b"GGUF" + struct.pack("<I", 1), "has version 1; give"),
    "big-endian": ("m.gguf", b"GGUF" + struct.pack(">I", 3), "is big-endian; give"),
    "huge count": ("m.gguf", b"GGUF" + struct.pack("<IQQ", 3, 1 << 62, 0), "ends inside of its"),
    "alignment": ("m.gguf", gguf_bytes({}, alignment=24), "alignment 24 is no power of two"),
    "metadata": (
        "m.gguf", b"GGUF" + struct.pack("<IQQQI", 3, 0, 1, 0, 77), "type 77 of a metadata value"
    ),
    "npy header": ("m.npy", b"\x93NUMPY\x01\0\x04\0{{{{", "header of array `m` is malformed"),
    "npy version": ("m.npy", b"\x93NUMPY\x09\0\x04\0{{{{", "header of array `m` is malformed"),
    "cut npy": ("m.npy", npy(np.ones(4, np.float32))[:-1], "tensor `m` ends at byte"),
    "cut npz": ("m.npz", archive({"a.npy": npy(np.ones(4))})[:-30], "cannot be unpacked"),
    "npz size": ("m.npz", archive({"a.npy": npy(np.ones(4))[:-8]}), "not the size of its shape"),
    "onnx": ("m.onnx", b"\x08\xff", "is no ONNX model"),
    "index": ("m.index.json", b'{"weight_map": 3}', "`weight_map`: Input should be a valid dict"),
    "escape": ("m.index.json", b'{"weight_map": {"a": "../x"}}', "is not the name of a file"),
    "gone": ("m.index.json", b'{"weight_map": {"a": "x"}}', "file `x`, which is not there"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_is_one_line(name: str, tmp_path: Path) -> None:
    file, data, says = BROKEN[name]
    if file.endswith(".onnx"):
        pytest.importorskip("onnx")
    (tmp_path / file).write_bytes(data)
    with pytest.raises(CastigateError, match=says) as raised:
        open_checkpoint(tmp_path / file)
    assert "\n" not in str(raised.value)
    assert ";" in str(raised.value)


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, says in (
        (tmp_path / "gone", r"cannot be read \(No such file"),
        (tmp_path / "pipe", "is a pipe or a device"),
        (Path("/dev/zero"), "is a pipe or a device"),
        (tmp_path, r"is a folder with no \*.safetensors; name one file"),
    ):
        with pytest.raises(CastigateError, match=says):
            open_checkpoint(path)


def test_a_shard_without_its_tensor(tmp_path: Path) -> None:
    write_safetensors(tmp_path / "x", {"b": np.ones(2)})
    (tmp_path / "m.json").write_text('{"weight_map": {"a": "x"}}')
    with pytest.raises(CastigateError, match="`x` has no tensor `a`"):
        open_checkpoint(tmp_path / "m.json")


def test_a_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", {"x": np.ones(100)})
    [tensor] = open_checkpoint(path).floats
    os.truncate(path, 300)
    with pytest.raises(CastigateError, match="ends inside of tensor `x`"):
        list(tensor.chunks())


def test_damage_in_a_compressed_member(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    np.savez_compressed(path, x=weights("float64", 3000))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(data)
    [tensor] = open_checkpoint(path).floats
    with pytest.raises(CastigateError, match="cannot be unpacked"):
        list(tensor.chunks())


def test_no_pickle_is_loaded(tmp_path: Path) -> None:
    class Runs:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "ran"),)

    np.save(tmp_path / "m.npy", np.array([Runs()], object), allow_pickle=True)
    contents = open_checkpoint(tmp_path / "m.npy")
    assert (contents.floats, contents.others) == ((), (("m", "object"),))
    assert not (tmp_path / "ran").exists()
