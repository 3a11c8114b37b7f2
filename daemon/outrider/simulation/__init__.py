"""Simulation of a site: machines, owners and jobs. Only this package knows the true run times."""
