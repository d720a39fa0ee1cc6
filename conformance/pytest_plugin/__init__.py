"""The pytest plugin: options, one item per case, parallel judging, and the ledger."""
