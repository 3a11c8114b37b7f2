"""Shapes of answers that are too big for the file of their endpoint, or that several share."""
