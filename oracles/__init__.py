"""Everything that answers cases: the reference, framework adapters, programs of a vendor."""
