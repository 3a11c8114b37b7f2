"""The words: jobs, machines, events, decisions, outcomes. This room knows nobody."""
