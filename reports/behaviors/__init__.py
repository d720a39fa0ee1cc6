"""Closed forms (behaviors) for a backend's answers to inputs that a document leaves open."""
