"""Findings as folders that run alone: a script, and the model and the tensors that it reads."""
