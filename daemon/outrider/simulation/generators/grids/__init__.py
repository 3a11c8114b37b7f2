"""Generators of grid workloads: those of Perez et al. (2008) and of Vengerov (2005).

Seeds below 10,000 are for evaluation (tests, reproductions, comparisons); training and tuning use
seeds from 10,000, so that nothing is fitted to the workloads that it is evaluated on.
"""

from outrider.simulation.generators.grids.workloads import perez_grid, vengerov_grid

__all__ = ["perez_grid", "vengerov_grid"]
