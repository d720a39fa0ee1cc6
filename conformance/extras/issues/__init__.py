"""Public threads about conversions: who is right by the document, and what is answered now."""
