"""Suganthi and Devi's two-way scheduling and LAJS again: learning automata on users and nodes.

S. Suganthi, S. Nandhini Devi: "Two way proportional job scheduling in computational grids using
learning automata". The paper prints no experiment and no figure, so the experiments are ours: each
puts a sentence of the paper where it can be measured.
"""

from outrider_lab.papers.automata.reproduction import Reproduction

__all__ = ["Reproduction"]
