"""Metrics: declared once, taken from the accounting, shown in two formats."""
