"""The suite and the command: cases meet oracles here."""
