"""`castigate run`: its plan, worker processes, progress, and the assembly of their results."""
