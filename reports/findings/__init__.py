"""What complete runs found, read from their tables and compared with earlier runs."""
