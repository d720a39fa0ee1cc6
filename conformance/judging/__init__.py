"""What judges have in common: how they ask, what they know of a backend, and their verdicts."""
