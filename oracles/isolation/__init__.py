"""Backends in supervised processes, so that a crash or a hang becomes a verdict."""
