"""Policies that ship with Outrider. Each is one file and knows only `outrider.api`."""
