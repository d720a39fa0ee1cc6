"""The documents as rules: YAML files, and the modules that read, check and resolve them."""
