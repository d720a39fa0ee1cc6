"""The suite's own version."""

VERSION = "0.2.0"
