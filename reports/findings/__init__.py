"""What complete runs have found, read from their tables and compared."""
