"""Real programs that Outrider is tested against, installed by `make peers`."""
