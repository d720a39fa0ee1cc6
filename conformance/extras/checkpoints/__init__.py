"""Checkpoints: which numbers of a model's file change in a cast, and where backends differ."""
