"""The lab: many runs side by side, from which policies are compared and papers' claims judged."""
