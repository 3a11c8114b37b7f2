"""Conversion of source events into a numbered stream in time order, without duplicates or gaps."""
