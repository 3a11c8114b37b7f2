"""Sweeps: a grid of traces, policies, settings and seeds, a row of results each."""
