"""The HTML report: a folder of pages that open from a disk and ask no network for anything."""
