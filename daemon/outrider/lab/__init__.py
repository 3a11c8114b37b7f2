"""The lab: many runs side by side, and what they say about the papers' claims."""
