"""Workloads: files in Standard Workload Format, generators, and their replay."""
