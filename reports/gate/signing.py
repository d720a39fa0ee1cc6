"""Signatures of certificates: Ed25519, by the package `cryptography` (the extra `sign`)."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

from reports.gate.canonical_json import canonical
from specs.errors import CastigateError

ALGORITHM = "ed25519"
HEX = re.compile("(?:[0-9a-f]{2})+")


def private_key(file: Path) -> Any:
    """The private key in a PEM file."""
    serialization, ed25519, _ = _cryptography()
    try:
        key = serialization.load_pem_private_key(_read(file), password=None)
    except (ValueError, TypeError) as error:
        raise CastigateError(f"{file} holds no private key in PEM: {error}") from None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise CastigateError(
            f"{file} is no Ed25519 key; make one by `openssl genpkey -algorithm ed25519`"
        )
    return key


def signed(certificate: dict[str, Any], key: Any) -> dict[str, Any]:
    """A certificate with a signature over all the rest of it."""
    signature = {
        "algorithm": ALGORITHM,
        "key": _hex_of(key.public_key()),
        "value": key.sign(canonical(unsigned(certificate))).hex(),
    }
    return {**unsigned(certificate), "signature": signature}


def unsigned(certificate: dict[str, Any]) -> dict[str, Any]:
    """What a signature is over."""
    return {name: value for name, value in certificate.items() if name != "signature"}


def signer_of(certificate: dict[str, Any]) -> str:
    """The public key, in hex, whose signature holds; an error where it does not."""
    signature = certificate.get("signature")
    match signature:
        case {"algorithm": "ed25519", "key": str(key), "value": str(value), **rest} if not rest:
            pass
        case _:
            raise CastigateError("the signature is none of castigate's")
    _, ed25519, invalid = _cryptography()
    try:
        if not (HEX.fullmatch(key) and HEX.fullmatch(value)):
            raise ValueError
        public = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(key))
        public.verify(bytes.fromhex(value), canonical(unsigned(certificate)))
    except (ValueError, invalid):
        raise CastigateError("the signature does not hold: the certificate was altered") from None
    return key


def public_key(file: Path) -> str:
    """The public key in a PEM file, in hex."""
    serialization, ed25519, _ = _cryptography()
    try:
        key = serialization.load_pem_public_key(_read(file))
    except ValueError as error:
        raise CastigateError(f"{file} holds no public key in PEM: {error}") from None
    if not isinstance(key, ed25519.Ed25519PublicKey):
        raise CastigateError(f"{file} is no Ed25519 key")
    return _hex_of(key)


def _hex_of(public: Any) -> str:
    raw: bytes = public.public_bytes_raw()
    return raw.hex()


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise CastigateError(f"{file} cannot be read: {error.strerror}") from None


def _cryptography() -> tuple[Any, Any, Any]:
    """What signs; it is imported only where something is signed."""
    try:
        primitives = "cryptography.hazmat.primitives"
        serialization = importlib.import_module(f"{primitives}.serialization")
        ed25519 = importlib.import_module(f"{primitives}.asymmetric.ed25519")
        exceptions = importlib.import_module("cryptography.exceptions")
    except ModuleNotFoundError as error:
        raise CastigateError(f"{error.name} is missing: pip install 'castigate[sign]'") from None
    return serialization, ed25519, exceptions.InvalidSignature
