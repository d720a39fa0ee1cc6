"""The exact definition of a cast, its staircases, and the kernels, written independently."""
