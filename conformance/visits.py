"""Moved."""

from oracles.reference.visits import *  # noqa: F403
