"""Chains: casts one after another, in one program."""

from conformance.families.chains.mechanisms import says

__all__ = ["says"]
