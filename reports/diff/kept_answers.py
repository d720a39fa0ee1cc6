"""The former name of ``reports.diff.answer_arrays``, until its users are renamed."""

from reports.diff.answer_arrays import DatumArray as Kept
from reports.diff.answer_arrays import InputsAndAnswers as Answered
from reports.diff.answer_arrays import decode_array as kept_of

__all__ = ["Answered", "Kept", "kept_of"]
