"""Whether a decision may be carried out (`gate`), and how it is (`lever_runner`)."""
