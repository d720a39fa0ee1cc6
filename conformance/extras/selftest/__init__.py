"""The self test: whether a backend speaks its protocol, before any document judges its answers."""
