"""Checks certificates that somebody else made, and asks backends for the same answers again."""
