"""The HTML report: a folder of pages that opens from a disk and loads nothing from a network."""
