"""Until when: expected starts of waiting jobs, by the scheduler's own rule run forward."""
