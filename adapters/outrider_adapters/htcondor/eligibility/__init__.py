"""Eligibility of machines for jobs, by ``Requirements`` of jobs and ``START`` of slots.

Jobs with the same requirements are one kind, and so are slots with the same values. An expression
is evaluated once for each kind of job and of slot, clause by clause.
"""

from outrider_adapters.htcondor.eligibility.eligibility_watch import EligibilityWatch

__all__ = ["EligibilityWatch"]
