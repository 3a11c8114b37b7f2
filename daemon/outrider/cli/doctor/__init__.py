"""Checks of everything the daemon needs on a host."""
