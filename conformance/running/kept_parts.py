"""Keeps what the reference answered, so that a night need not compute it again.

The reference answers from castigate's own files, the documents and numpy alone. As long as these
are the same, and the options of the run, so are its judgements.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from zipfile import BadZipFile, ZipFile, ZipInfo

import numpy as np

from reports.run_store.record import RunRecord
from reports.run_store.storage import Folder
from reports.run_store.store import RunStore
from reports.run_store.task_file import DamagedPartError, read_task_name
from reports.suite_digest import suite_digest

BACKEND = "reference"
FILE = "reference.zip"
KEY = "key"
"""The entry that says what the parts depend on; all other entries are parts."""


@dataclass(frozen=True)
class KeptParts:
    """A file with the parts of the reference's tasks, which later runs take over."""

    folder: Folder

    def restore(self, store: RunStore) -> None:
        """Write the kept parts into a run's folder, if their key is ``key_of`` the run's record.

        A run without the reference gets none.
        """
        if BACKEND in (each.name for each in store.record.backends):
            for name, part in self._parts(key_of(store.record)).items():
                store.write_part(name, part)

    def keep(self, store: RunStore) -> None:
        """Store the reference's parts of a finished run in the file, in place of all that it has.

        The file is left as it is if it has the same key and tasks, or if the run lacks the
        reference.
        """
        key, stream = key_of(store.record), BytesIO()
        names = [each for each in sorted(store.finished()) if each.startswith(f"{BACKEND}/")]
        if not names or set(names) == set(self._parts(key)):
            return
        with ZipFile(stream, "w") as archive:
            # A ZipInfo names no time of day: the same parts make the same file.
            archive.writestr(ZipInfo(KEY), key)
            for number, name in enumerate(names):
                archive.writestr(ZipInfo(str(number)), store.part(name))
        self.folder.write(FILE, stream.getvalue())

    def _parts(self, key: str) -> dict[str, bytes]:
        """Return the kept parts by the names of their tasks; none if the file has another key.

        There are none either if the file is missing or cannot be read: its parts are computed
        again, and then replaced.
        """
        data = self.folder.read(FILE)
        if data is None:
            return {}
        try:
            with ZipFile(BytesIO(data)) as archive:
                if archive.read(KEY).decode() != key:
                    return {}
                parts = [archive.read(name) for name in archive.namelist() if name != KEY]
            return {read_task_name(part): part for part in parts}
        except (BadZipFile, KeyError, ValueError, DamagedPartError):
            return {}


def key_of(record: RunRecord) -> str:
    """Return a digest of everything that the reference's judgements depend on."""
    options = record.selection.model_dump(mode="json"), record.tier, record.seed
    packages = [each.packages for each in record.environments], np.__version__
    content = [suite_digest(), *options, record.max_examples, record.documents, *packages]
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
