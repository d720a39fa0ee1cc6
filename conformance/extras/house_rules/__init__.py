"""House rules: proofs of them, and which backends obey them."""
