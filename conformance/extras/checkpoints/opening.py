"""Opens a checkpoint: finds out by its first bytes and its name which format it has."""

from __future__ import annotations

from pathlib import Path

from conformance.extras.checkpoints import gguf_file, numpy_file
from conformance.extras.checkpoints.safetensors_file import (
    LENGTH_BYTES,
    read_folder,
    read_index,
    read_safetensors,
)
from conformance.extras.checkpoints.stored_tensors import StoredContents
from specs.errors import CastigateError, quoted, require_regular

FORMATS = "safetensors, GGUF, npz, npy or ONNX"
PICKLE = b"\x80"
HEAD_BYTES = 16
ONNX_VERSION = b"\x08"
"""The first byte of a model: that of the field ``ir_version``."""


def open_checkpoint(path: Path) -> StoredContents:
    """Return the tensors of a file, of an index, or of a folder of safetensors files.

    No element is read. Raise CastigateError if there is no such file, if it is a pipe or a device,
    if its format is not one of ``FORMATS``, or if it is malformed.
    """
    try:
        require_regular(path)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CastigateError(
            f"{path} cannot be read ({reason}); give the path of a checkpoint"
        ) from None
    except ValueError:
        raise CastigateError(f"{quoted(str(path))} is no path; give that of a checkpoint") from None
    if path.is_dir():
        return read_folder(path)
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    if not head:
        raise CastigateError(f"{path} is empty; give a checkpoint in {FORMATS}")
    if head.startswith(gguf_file.MAGIC):
        return gguf_file.read_gguf(path)
    if head.startswith(numpy_file.NPY_MAGIC):
        return numpy_file.read_npy(path)
    if head.startswith(numpy_file.ZIP_MAGICS):
        if any(Path(each).name == "data.pkl" for each in numpy_file.members_of(path)):
            raise _is_pickle(path)
        return numpy_file.read_npz(path)
    if path.suffix == ".json":
        return read_index(path)
    if path.suffix == ".safetensors" or head[LENGTH_BYTES : LENGTH_BYTES + 1] == b"{":
        return read_safetensors(path)
    if head.startswith(PICKLE):
        raise _is_pickle(path)
    if path.suffix == ".onnx" or head.startswith(ONNX_VERSION):
        from conformance.extras.checkpoints.onnx_file import read_onnx  # Few checkpoints need it.

        return read_onnx(path)
    raise CastigateError(
        f"{path} begins with the bytes {head[:LENGTH_BYTES].hex(' ')}, which is none of {FORMATS};"
        " convert it to one of these"
    )


def _is_pickle(path: Path) -> CastigateError:
    return CastigateError(
        f"{path} is a pickle, which may run code when it is read; if you trust it, convert it:"
        " safetensors.torch.save_file(torch.load(PATH, weights_only=True), 'model.safetensors')"
    )
