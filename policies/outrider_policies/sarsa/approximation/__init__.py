"""Approximations of a value function, and how they are fitted."""
