"""``castigate codec``: judges a function of one's own that encodes or decodes small floats."""

from __future__ import annotations
