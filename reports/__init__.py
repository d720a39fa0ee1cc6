"""Results: comparison, the run store, findings, pages, the gate and the ledgers."""
