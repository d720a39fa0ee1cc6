"""Reads the tables of complete runs, and compares the last run with earlier ones."""
