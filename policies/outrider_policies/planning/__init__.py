"""Policies that plan whole machines: Vengerov 2005 and its baselines."""
