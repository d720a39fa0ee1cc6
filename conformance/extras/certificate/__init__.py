"""Certificates that somebody else made: whether they hold, and whether the answers come again."""
