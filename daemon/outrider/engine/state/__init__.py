"""State of a site: its machines, its jobs, its clock."""
