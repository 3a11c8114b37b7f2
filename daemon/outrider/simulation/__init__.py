"""The virtual site: physics of machines, owners, jobs and power. The truth lives here only."""
