"""Vengerov (2005) again: a learned value of the machine's state, to preempt and to shrink jobs.

D. Vengerov: "A Reinforcement Learning Framework for Utility-Based Scheduling in
Resource-Constrained Systems", Sun Microsystems Laboratories, 2005.
"""

from outrider_lab.papers.vengerov.reproduction import Reproduction

__all__ = ["Reproduction"]
