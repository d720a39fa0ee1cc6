"""The conformance suite and the command line."""
