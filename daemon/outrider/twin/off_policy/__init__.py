"""A check by importance weights: what a policy would have changed, one start at a time."""
