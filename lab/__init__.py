"""Measures and proves; the product never imports it, and reads only what it found, as data."""
