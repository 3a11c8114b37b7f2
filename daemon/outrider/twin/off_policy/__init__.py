"""Off-policy check: what another policy would have changed, one start at a time, by weights."""
