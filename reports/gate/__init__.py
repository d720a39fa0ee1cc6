"""The acceptance gate: a policy, a judgement by it, and a certificate that can be re-checked."""
