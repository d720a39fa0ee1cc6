"""Surveys that take long: exact counts, open regions, and the versions of a framework."""
