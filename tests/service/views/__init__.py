"""Telling: what the service manager and the log reader are told."""
