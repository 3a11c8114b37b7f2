"""Traces as files and as data: campus folders and Standard Workload Format."""
