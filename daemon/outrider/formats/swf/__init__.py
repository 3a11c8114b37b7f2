"""Standard Workload Format: reading and writing of its files."""
