"""The base of those parts of a document that can point at lines of its page."""

from __future__ import annotations

from specs.model.page_lines import LineSpans
from specs.model.strict_model import StrictModel


class PointedEntry(StrictModel):
    """A part of a document that can point at the lines of the page that it encodes."""

    lines: LineSpans | None = None
    """Empty (`none` in YAML) if its clause cites a source other than the page."""
