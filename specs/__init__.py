"""Documents as rules: the YAML files, and the modules that read, check and resolve them."""
