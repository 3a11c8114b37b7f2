"""Shapes of answers that are too large for the file of their endpoint, or that several share."""
