"""Generator of campuses: a random year like the one McGough and Forshaw (2015) describe.

The figures that the paper states are met; parameters that it leaves open are fitted, and listed
with reasons in ``docs/reference/generated-campus.md``. Nothing here reads a recorded trace.
"""

from outrider.simulation.generators.campus.options import CampusOptions
from outrider.simulation.generators.campus.year import generate_campus

__all__ = ["CampusOptions", "generate_campus"]
