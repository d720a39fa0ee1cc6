"""From a case to a verdict: inputs, question, answer, comparison; invariances beside it."""
