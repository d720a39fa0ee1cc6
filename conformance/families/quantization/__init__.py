"""Quantization: codes by a scale and a zero point, and the values of codes."""
