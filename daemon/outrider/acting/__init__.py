"""Whether a decision may be carried out; the place for levers."""
