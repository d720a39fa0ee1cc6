"""What a document's YAML may say: its schema, its vocabulary, and where each part stands."""
