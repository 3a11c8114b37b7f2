"""Proposing machine groups from the machines that are seen, for ``outrider doctor --suggest``."""
