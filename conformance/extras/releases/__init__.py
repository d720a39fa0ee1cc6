"""Past releases of a framework: what each changed, and which was the first to answer otherwise."""
