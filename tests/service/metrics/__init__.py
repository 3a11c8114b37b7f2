"""Metrics: declared once, mirrored from the accounting, rendered in two formats."""
