"""Policies that plan a whole machine: Vengerov 2005 and what it is held against."""
