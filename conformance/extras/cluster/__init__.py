"""Runs on a Dask cluster: its workers do the tasks, in place of processes on this machine."""
