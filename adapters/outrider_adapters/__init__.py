"""Adapters: sources of a site's events. Each is a file or folder, found by name.

They depend only on `outrider.api` and are independent of the policies.
"""
