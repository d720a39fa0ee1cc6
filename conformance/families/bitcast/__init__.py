"""Bitcasts: the same bits as another dtype, in the shape that a document gives."""
