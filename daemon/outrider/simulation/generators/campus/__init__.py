"""Campuses made by chance: a year like the one McGough and Forshaw (2015) describe.

What the paper states is met, what it leaves open is fitted and listed, with its reason, in
``docs/reference/generated-campus.md``. Nothing here reads a recorded trace.
"""

from outrider.simulation.generators.campus.options import CampusOptions
from outrider.simulation.generators.campus.year import generate_campus

__all__ = ["CampusOptions", "generate_campus"]
