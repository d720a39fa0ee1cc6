"""Mutants: backends with one deliberate fault each, by which the suite itself is tested.

``castigate mutants`` runs them, and ``backend`` makes each of them a backend.
"""
