"""Expected start times of waiting jobs, by simulating the scheduler forward."""
