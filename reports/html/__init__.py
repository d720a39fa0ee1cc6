"""The HTML report: a folder of pages that opens from a local disk and needs no network."""
