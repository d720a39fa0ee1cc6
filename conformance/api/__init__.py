"""Implements what ``castigate.py`` exports. Programs import that file; this package is internal."""
