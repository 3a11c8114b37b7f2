"""Standard Workload Format files."""
