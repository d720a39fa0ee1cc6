"""What the documents say: YAML, and the few modules that read it."""
