"""Casts, and the calls that make them: each element by itself."""
