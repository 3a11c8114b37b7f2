"""Tests of off-policy checks."""
