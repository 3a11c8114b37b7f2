"""Training before going live: a learner watches a behaviour policy decide."""
