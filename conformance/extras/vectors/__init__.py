"""Vectors: what casts may answer, as files that need no Python to read."""
