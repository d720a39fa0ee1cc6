"""The acceptance gate: a policy, the verdict by it, and a certificate that can be re-checked."""
