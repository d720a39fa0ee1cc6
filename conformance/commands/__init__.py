"""One module per command of `castigate`."""
