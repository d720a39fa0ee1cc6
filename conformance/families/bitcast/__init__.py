"""Bitcasts: the same bits as another dtype, in the shape that a document gives."""

from conformance.families.bitcast.explanation import explain
from conformance.families.bitcast.judge import judge_bitcast
from conformance.families.family import Family

FAMILY = Family("bitcast", judge_bitcast, explain)
