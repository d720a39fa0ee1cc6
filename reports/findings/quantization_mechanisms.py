"""What a system may have done in place of a document's quantization, in words.

The judges of quantization and of blocks try these mechanisms, and keep the names of those that give
every answer of a case. Here is what a finding says of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from reports.findings import block_mechanisms

SAYS: Mapping[str, str] = {
    "multiplies-by-the-reciprocal": "multiplies by 1/scale instead of dividing by the scale",
    "rounds-half-away": "rounds ties away from zero when it quantizes",
    "truncates-quotients": "truncates the quotient when it quantizes",
}


def says(name: str) -> str:
    """The sentence of a finding."""
    return block_mechanisms.says(name) or SAYS[name]
