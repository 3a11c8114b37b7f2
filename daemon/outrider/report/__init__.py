"""The weekly report: what happened, what the twin estimates, and how reliable both are."""
