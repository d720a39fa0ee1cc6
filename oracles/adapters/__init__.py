"""One adapter per framework; each imports its framework only when it is created."""
