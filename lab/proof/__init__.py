"""The proof that the reference's kernels agree with its definition on every input."""
