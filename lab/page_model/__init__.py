"""A model of quantization, which we wrote from the pages alone; ``python -m lab.page_model``."""
