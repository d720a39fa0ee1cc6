"""Inputs, answers and explanations as JSON and words spell them, and tests for other suites."""
