"""Tests of the twin: results from a journal alone."""
