"""Watching an HTCondor pool by its calls: the mock pool, from real ClassAds."""
