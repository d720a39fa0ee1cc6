"""Two independent truths about a cast: ``exact``, the definition, and ``kernels``."""
