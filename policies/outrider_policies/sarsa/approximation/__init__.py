"""Value function approximators and their optimisers."""
