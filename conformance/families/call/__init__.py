"""Calls: how documents decide their results, and judges of what is promised besides values."""
