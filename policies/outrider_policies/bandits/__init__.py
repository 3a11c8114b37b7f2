"""Bandits that learn where and when jobs are not evicted (McGough and Forshaw 2015)."""
