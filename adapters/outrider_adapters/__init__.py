"""Adapters: who tells Outrider what happens at a site. One file or folder each, found by name.

They know only `outrider.api` and are strangers to the policies.
"""
