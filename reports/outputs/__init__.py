"""The report as JUnit XML, CSV and Markdown."""
