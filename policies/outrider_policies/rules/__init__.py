"""Rules that learn nothing: the baselines, and bounds for judging."""
