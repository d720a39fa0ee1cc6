"""The known divergences of each backend, a file of entries per backend, strict both ways."""
