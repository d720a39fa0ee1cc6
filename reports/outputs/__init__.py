"""The results of a run as Markdown, CSV, JUnit XML and SARIF, and as text for a terminal."""
