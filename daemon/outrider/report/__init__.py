"""The weekly report: what was, what would have been, and how sure both are."""
