"""The report as Markdown, CSV and JUnit XML."""
