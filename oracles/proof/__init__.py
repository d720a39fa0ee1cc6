"""The proof of the reference: no input exists on which the kernels differ from the definition."""
