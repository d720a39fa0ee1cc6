"""The diff engine: which answers a rule allows, and how failures are gathered and counted."""
