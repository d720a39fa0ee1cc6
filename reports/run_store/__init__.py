"""The folder of a run: its record, task files, tables, and how shards are merged."""
