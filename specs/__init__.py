"""Documents as rules: the YAML files, and the modules that read, check and resolve them."""

VERSION = "0.3.0"
"""The suite's own version."""
