"""The known failures of each backend, one YAML file each, strict in both directions."""
