"""Grading: whether an answer is allowed, for single values, arrays and whole chunks of a sweep."""
