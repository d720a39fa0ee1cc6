"""The failing judgements of a pytest run, in a folder that all its processes write to."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow as pa
from numpy.typing import NDArray

from reports.case_patterns import natural_order
from reports.findings.cells import Cell
from reports.findings.judged_cells import cell_of
from reports.judgement import FAILING, DatumArray, Judgement, decode_array
from reports.run_store.task_file import decode_task, encode_task
from specs.formats import formats
from specs.selection import case_named

COMPRESSION = "zstd"


@dataclass(frozen=True)
class FailureFolder:
    """A folder with a file per failing judgement, and one per distinct array: inputs or answers."""

    folder: Path

    def add(self, judgement: Judgement) -> None:
        """Store a judgement if it fails; one that is stored already stays as it is."""
        if judgement.verdict not in FAILING or (path := self._path(judgement)).exists():
            return
        digests = []
        for array in judgement.answered or ():
            digests.append(array.digest)
            self._store_array(array)
        content = encode_task(json.dumps(digests), [replace(judgement, answered=None)])
        self._write(path, content)

    def cells(self) -> list[Cell]:
        """Read all stored judgements as cells, ordered by backend and then by pair."""
        order = {name: index for index, name in enumerate(formats())}

        def pair_by_pair(cell: Cell) -> tuple[Any, ...]:
            return cell.backend, order[cell.source], order[cell.target], natural_order(cell.name)

        return sorted(map(_read_cell, self.folder.glob("*.part")), key=pair_by_pair)

    def cell(self, judgement: Judgement) -> Cell:
        """Read a judgement that fails, and is stored, as a cell."""
        return _read_cell(self._path(judgement))

    def values(self, digest: str) -> NDArray[Any]:
        content = (self.folder / f"{digest}.array").read_bytes()
        dtype, size, data = content.split(b"\n", 2)
        decoded = pa.decompress(data, int(size), COMPRESSION, asbytes=True)
        return decode_array(dtype.decode(), decoded).values

    def _path(self, judgement: Judgement) -> Path:
        name = f"{judgement.backend} {judgement.check or judgement.case}"
        return self.folder / f"{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}.part"

    def _store_array(self, array: DatumArray) -> None:
        path = self.folder / f"{array.digest}.array"
        if not path.exists():
            data = pa.compress(array.data, COMPRESSION, asbytes=True)
            self._write(path, b"%s\n%d\n%s" % (array.dtype.encode(), len(array.data), data))

    def _write(self, path: Path, content: bytes) -> None:
        """Write a file so that it appears complete, even if other processes write the same one."""
        unfinished = self.folder / token_hex(8)
        unfinished.write_bytes(content)
        unfinished.replace(path)


def _read_cell(path: Path) -> Cell:
    digests, [judgement] = decode_task(path.read_bytes())
    return cell_of(case_named(judgement.case), judgement, json.loads(digests))
