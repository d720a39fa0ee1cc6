"""Reads programs that XLA compiled."""

from __future__ import annotations

import re

COMPUTED = re.compile(r" (convert|bitcast-convert|compare|real|complex|iota)\(")
"""What stays in a program that XLA compiled without folding it; a cast to bool is a compare."""
