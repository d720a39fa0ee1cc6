"""Ed25519 signatures of certificates, with the package `cryptography` (the extra `sign`)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from reports.gate.canonical_json import canonical_bytes
from specs.errors import CastigateError, require_regular

ALGORITHM = "ed25519"
HEX = re.compile("(?:[0-9a-f]{2})+")


def load_private_key(file: Path) -> Any:
    """Load an Ed25519 private key from a PEM file.

    Raise CastigateError if the file cannot be read or holds no such key, or if the package
    `cryptography` is missing.
    """
    serialization, ed25519, _ = _cryptography()
    try:
        key = serialization.load_pem_private_key(_read(file), password=None)
    except (ValueError, TypeError) as error:
        raise CastigateError(f"{file} holds no private key in PEM format: {error}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise CastigateError(
            f"{file} holds a key that is not Ed25519; "
            "make one with `openssl genpkey -algorithm ed25519`"
        )
    return key


def load_public_key(file: Path) -> str:
    """Load an Ed25519 public key from a PEM file, and return it in hex.

    Raise CastigateError if the file cannot be read or holds no such key, or if the package
    `cryptography` is missing.
    """
    serialization, ed25519, _ = _cryptography()
    try:
        key = serialization.load_pem_public_key(_read(file))
    except ValueError as error:
        raise CastigateError(f"{file} holds no public key in PEM format: {error}") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise CastigateError(f"{file} holds a key that is not Ed25519")
    return _hex_of(key)


def sign_certificate(certificate: dict[str, Any], key: Any) -> dict[str, Any]:
    """Return a copy of a certificate with the ``signature`` of its other keys.

    ``key`` is a private key from ``load_private_key``. The signature has the `algorithm`, the
    public `key` and the `value`.
    """
    signature = {
        "algorithm": ALGORITHM,
        "key": _hex_of(key.public_key()),
        "value": key.sign(_signed_bytes(certificate)).hex(),
    }
    return {**certificate, "signature": signature}


def verify_signature(certificate: dict[str, Any], named: str) -> str:
    """Return the public key, in hex, that signed a certificate.

    Raise CastigateError if the package `cryptography` is missing, or, with the file's name
    ``named``, if the signature is malformed or does not match.
    """
    match certificate.get("signature"):
        case {"algorithm": "ed25519", "key": str(key), "value": str(value), **rest} if not rest:
            pass
        case _:
            raise CastigateError(f"{named} has a signature that castigate did not write")
    _, ed25519, invalid_signature = _cryptography()
    try:
        if not (HEX.fullmatch(key) and HEX.fullmatch(value)):
            raise ValueError
        public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(value), _signed_bytes(certificate))
    except (ValueError, invalid_signature):
        raise CastigateError(
            f"{named} was altered: its signature does not match its content"
        ) from None
    return key


def _signed_bytes(certificate: dict[str, Any]) -> bytes:
    content = {name: value for name, value in certificate.items() if name != "signature"}
    return canonical_bytes(content)


def _hex_of(public: Any) -> str:
    raw: bytes = public.public_bytes_raw()
    return raw.hex()


def _read(file: Path) -> bytes:
    try:
        require_regular(file)
        return file.read_bytes()
    except OSError as error:
        raise CastigateError(f"{file} cannot be read: {error.strerror}") from None


def _cryptography() -> tuple[Any, Any, Any]:
    """Return the modules ``serialization`` and ``ed25519``, and the class InvalidSignature.

    They belong to the optional package `cryptography`. If it is missing, raise CastigateError that
    says how to install it.
    """
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ModuleNotFoundError as error:
        raise CastigateError(
            f"package `{error.name}` is missing; install it with `pip install 'castigate[sign]'`"
        ) from None
    return serialization, ed25519, InvalidSignature
