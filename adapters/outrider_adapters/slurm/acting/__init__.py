"""Levers on a Slurm, for the modes that act."""
