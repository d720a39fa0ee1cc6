"""Backends in processes of their own: whatever becomes of one of these is an answer too."""
