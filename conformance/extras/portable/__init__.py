"""Finds the inputs to which all backends give the same bits."""
