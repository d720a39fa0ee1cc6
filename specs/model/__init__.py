"""The language of a document's YAML: schema, vocabulary, and the line of each part."""
