"""The board: what each backend answers to the pairs that people ask about most, as a site."""
