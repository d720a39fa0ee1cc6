"""A small page with two versions, and a document that points at its lines."""

from __future__ import annotations

from pathlib import Path

from specs.loader import Document, load_document
from specs.model.page_lines import line_digests

PAGE = """\
Operation

Version 2
A float32 becomes an int8; fractions are cut.
Infinity is clamped.
NaN is open.
Version 1
A float32 becomes an int8; fractions are cut.
Infinity is open.
NaN is open.
Thanks to everybody
"""
DOCUMENT = """\
document: paged
title: Paged
operation: cast
seed: page.txt
scope: own-dtypes

versions:
  1:
    section: 7-10
    from: [float32]
    to:   [int8]
    rules: [cut, infinity-open, nan-open]
  2:
    section: 3-6
    extends: 1
    replace: {infinity-open: infinity-clamped}

rules:
  cut:
    clause: "the first sentence"
    lines: 4
    level: required
    when: {}
    then:
      overflow:  {is: max, clause: "version 2, clamped", lines: 5}
      -overflow: lowest
      otherwise: toward-zero
  infinity-open:
    clause: "version 1, infinity"
    lines: 9
    level: unspecified
    when: {}
    then: {inf: unspecified, -inf: unspecified}
  infinity-clamped:
    clause: "version 2, infinity"
    lines: [4-5]
    level: required
    when: {}
    then: {inf: max, -inf: lowest}
    conflict:
      - {with: "version 1", about: "open there", taken: "clamped", lines: 9}
  nan-open:
    clause: "the last sentence"
    lines: 6
    level: unspecified
    when: {}
    then: {nan: unspecified}

tensors:
  any-tensor:
    clause: "not on the page"
    lines: none
    level: recommended
    then: same-shape

not-encoded:
  - {lines: [1, 3, 7], reason: "headings"}
  - {lines: 11, reason: "an acknowledgment"}
"""


def write_paged(folder: Path, document: str = DOCUMENT, page: str = PAGE) -> Document:
    """Write a document and the digests of its page to a folder, and load the document."""
    path = folder / "paged.yaml"
    path.write_text(document, encoding="utf-8")
    digests = "\n".join(line_digests(page))
    (folder / "page.txt.sha256").write_text(f"{digests}\n", encoding="ascii")
    return load_document(path)
