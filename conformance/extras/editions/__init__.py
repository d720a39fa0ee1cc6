"""Compares two editions of a document: inputs whose ruling changes, and backends it breaks."""
