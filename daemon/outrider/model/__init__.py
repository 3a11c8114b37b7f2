"""The types: jobs, machines, events, decisions, outcomes. Imports no other room."""
