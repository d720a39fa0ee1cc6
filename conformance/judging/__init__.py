"""The judges of every family use these modules to ask backends and to reach verdicts."""
