"""What changed between two runs, or since a ledger: worse, better, otherwise; in the same words."""
