"""Compare the reference with arithmetic that others wrote; ``python -m lab.truths``."""
