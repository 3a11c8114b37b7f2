"""Policies compared on the same traces, job by job, with published baselines beside them."""
