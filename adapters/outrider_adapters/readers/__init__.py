"""Readers of logs: text that a batch system wrote, turned into events."""
