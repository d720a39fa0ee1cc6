"""The known failures of each backend, one YAML file each, strict in both directions.

A file lies here or, if the backend's adapter is a folder, in this one.
"""

from pathlib import Path

from oracles.registry import BUILTINS, framework_of

FOLDER = Path(__file__).parent
ADAPTERS = Path(__file__).parents[2] / "oracles" / "adapters"


def file_name(name: str) -> str:
    """Return the name of the file of a ledger; a colon before a variant becomes a dot."""
    return f"{name.replace(':', '.')}.yaml"


def has_ledger(backend: str) -> bool:
    """Return whether a backend has a ledger that ships, without reading it."""
    return (folder_of(backend) / file_name(backend)).is_file()


def folder_of(backend: str) -> Path:
    """Return the folder in which a backend's ledger lies, or would."""
    framework = framework_of(backend)
    builtin = BUILTINS.get(framework)
    return ADAPTERS / framework if builtin is not None and builtin.has_folder else FOLDER
