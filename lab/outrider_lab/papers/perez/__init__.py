"""Perez et al. (2008) again: SARSA on utility and fairness, in the queue of a grid site.

J. Perez, C. Germain-Renaud, B. Kegl, C. Loomis: "Utility-based Reinforcement Learning for Reactive
Grids", ICAC 2008. The synthetic workloads of its table I are drawn for each seed; its
EGEE trace is not public, and windows like it (or files the user gives) take its place.
"""

from outrider_lab.papers.perez.reproduction import Reproduction

__all__ = ["Reproduction"]
