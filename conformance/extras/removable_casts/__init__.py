"""Which casts of a chain may be left out, by tables that the lab has made."""
