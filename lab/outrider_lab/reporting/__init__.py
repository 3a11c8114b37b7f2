"""Reports of results for people: intervals, verdicts on claims, pages and drawings."""
