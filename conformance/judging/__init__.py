"""Judges of every family ask, know backends and reach verdicts by these modules."""
