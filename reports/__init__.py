"""What came out: verdicts, drawings, counterexamples, summaries."""
