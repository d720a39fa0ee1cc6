"""Compares two editions of a document: the inputs whose ruling changes, and whom that breaks."""
