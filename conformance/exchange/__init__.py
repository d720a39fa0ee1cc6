"""Inputs, answers and explanations in JSON and in words, and tests for other suites."""
