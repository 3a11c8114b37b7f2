"""What Outrider changes in a Slurm, in the modes that act."""
