"""JSON lines: the inputs of cases out, and recorded answers in, each with its verdict."""
