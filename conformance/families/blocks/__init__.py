"""Blocks: elements that share a scale, which the operation finds itself."""
