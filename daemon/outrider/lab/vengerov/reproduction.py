"""The whole reproduction."""
plan = reproduce = None
