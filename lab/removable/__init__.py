"""Decides which casts of chains may be left out; ``castigate chains`` shows what was found."""
