"""Tests of the twin: answers from a journal alone."""
