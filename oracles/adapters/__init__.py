"""One adapter per framework; each imports its framework when it is created."""
