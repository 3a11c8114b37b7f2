"""Many runs side by side: what a run is, who carries it out, what is kept of it."""
