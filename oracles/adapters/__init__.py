"""One module per framework; each imports its framework only when it is built."""
