"""The acceptance gate: a policy, its verdict on a run, and a certificate that can be verified."""
