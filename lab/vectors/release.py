"""The files of the data release, packed so that the same vectors are the same bytes."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import tarfile
from collections.abc import Collection, Iterator
from hashlib import sha256
from pathlib import Path

from conformance.extras.vectors.command import LIMIT, selected_cases, write_vectors
from conformance.extras.vectors.index import VectorIndex
from specs.cases import Case
from specs.formats import format_named
from specs.loader import documents
from specs.questions import documents_always_asked

RELEASE = "1.0"
"""The number of the data, which is not that of the tool: it changes when an answer does."""
NAME = f"castigate-vectors-{RELEASE}"
ROOT = Path(__file__).parents[2]
OWN = Path(__file__).parent / "release"
"""The release's own README and licence."""
HARNESSES = ROOT / "examples" / "vectors"
WIDE = 16
"""Targets of that many bits and more have the overflows of small floats in a release only where a
document has them: they are 20 times the size, and their tables differ in a few lines."""
DICTIONARY = 1 << 26
"""Bytes in which a packer looks for what it has seen: tables of one pair lie side by side."""


def released_cases() -> list[Case]:
    """Return the cases of the release: the yardsticks but for some overflows, and documents.

    Documents that are asked by name only stay out: codecs check nothing, and carry nothing.
    """
    by_name = documents().keys() - documents_always_asked()
    cases = selected_cases((), ())
    return [case for case in cases if case.document not in by_name and _is_released(case)]


def _is_released(case: Case) -> bool:
    is_wide = format_named(case.target).bits >= WIDE
    return case.document != "small-floats" or not is_wide or case.mode.get("overflow") is None


def write_release(folder: Path, cases: Collection[Case], packed: Path) -> VectorIndex:
    """Write the release of cases into a new folder, and pack it; return its index."""
    folder.mkdir()
    index = write_vectors(folder, cases, LIMIT, os.cpu_count() or 1, with_headers=False)
    for source in sorted([*OWN.iterdir(), *HARNESSES.glob("*.*")]):
        name = source.name if source.parent == OWN else f"harnesses/{source.name}"
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(source.read_bytes())
    manifest = {
        "release": RELEASE,
        "castigate": index.castigate,
        "commit": _commit(),
        "suite": index.suite,
        "files": len(index.files),
        "lines": sum(each.lines for each in index.files),
        "left out": {each.why: len(each.cases) for each in index.left_out},
    }
    (folder / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n")
    sums = [
        f"{sha256(path.read_bytes()).hexdigest()}  {path.relative_to(folder).as_posix()}\n"
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    ]
    (folder / "SHA256SUMS").write_text("".join(sums))
    pack(folder, packed)
    return index


def _commit() -> str:
    """Return the commit of the checkout; empty outside of one."""
    asked = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return asked.stdout.strip()


def pack(folder: Path, packed: Path) -> None:
    """Pack a folder without times, owners or an order of the disk; similar files lie together."""
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": DICTIONARY}]
    with (
        lzma.open(packed, "wb", filters=filters) as stream,
        tarfile.open(fileobj=stream, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for path in _side_by_side(folder):
            entry = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")
            entry.size = path.stat().st_size
            with path.open("rb") as content:
                archive.addfile(entry, content)


def _side_by_side(folder: Path) -> Iterator[Path]:
    """Yield all files; those of one pair of dtypes, and of similar size, one after the other."""
    files = [path for path in folder.rglob("*") if path.is_file()]

    def place(path: Path) -> tuple[str, str, str, str]:
        kind, *inside = path.relative_to(folder).parts
        source, target = inside[1:3] if len(inside) > 3 else ("", "")
        return kind, target, source, "/".join(inside)

    yield from sorted(files, key=place)
