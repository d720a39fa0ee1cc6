"""The proof that the kernels agree with the definition on every input."""
