"""Outrider: a learning site scheduler that rides alongside a batch system."""

__version__ = "0.1.0"
