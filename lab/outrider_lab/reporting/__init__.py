"""What runs brought, for people: intervals, verdicts on claims, pages and drawings."""
