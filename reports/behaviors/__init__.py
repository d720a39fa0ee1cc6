"""Closed forms that reproduce what a backend answers where a document is silent."""
