"""McGough and Forshaw (2015) again: bandits against evictions and wasted energy.

Forshaw, McGough: "Reduction of wasted energy in a volunteer computing system through
Reinforcement Learning", CS-TR-1451, Newcastle University 2015. Its traces are not public; the
campus is generated to the paper's published statistics, so ratios are compared, not MWh.
"""

from outrider_lab.papers.mcgough.reproduction import Reproduction

__all__ = ["Reproduction"]
