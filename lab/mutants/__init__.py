"""Mutants: backends with one deliberate fault each, by which the suite itself is tested.

``python -m lab.mutants`` runs them, and ``backend`` makes each of them a backend.
"""
