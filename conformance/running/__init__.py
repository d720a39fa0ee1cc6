"""`castigate run`: its plan, worker processes, progress, and what becomes of their results."""
