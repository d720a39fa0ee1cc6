"""Carriers: operations that should move or convert values exactly, such as a product with one."""
