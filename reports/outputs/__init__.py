"""A report in forms that other programs read."""
