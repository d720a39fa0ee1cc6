"""Backends that are programs in any language; docs/protocol.md describes the wire protocol."""
