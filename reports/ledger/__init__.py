"""The known failures of each backend, one YAML file each, strict in both directions."""

from pathlib import Path

FOLDER = Path(__file__).parent


def file_name(name: str) -> str:
    """Return the name of the file of a ledger; a colon before a variant becomes a dot."""
    return f"{name.replace(':', '.')}.yaml"


def has_ledger(backend: str) -> bool:
    """Return whether a backend has a ledger that ships, without reading it."""
    return (FOLDER / file_name(backend)).is_file()
