"""Containers: whether a tensor comes back from a file or from DLPack as it was written."""
