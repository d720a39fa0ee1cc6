"""Judges what calls promise besides values: about members, memory, and later calls."""
