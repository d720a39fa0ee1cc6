"""What pages say of quantization, written from them alone; ``python -m lab.page_model``."""
