"""Canary trial by days: design and counts, record in the journal, watch."""
