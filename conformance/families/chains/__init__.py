"""Chains: casts one after another, in one program."""
