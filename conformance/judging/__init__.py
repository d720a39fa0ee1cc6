"""The kinds of question: one module each, with its judge, which does no input and output."""
