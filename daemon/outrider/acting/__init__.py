"""Execution of decisions: whether one may be applied (`gate`), and how (`lever_runner`)."""
