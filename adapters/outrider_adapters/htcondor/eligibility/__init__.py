"""Which machines a job may use: its ``Requirements`` and the slots' ``START``, by the pool's rules.

Jobs that ask the same are a kind, and so are slots that answer the same; an expression is evaluated
once for each kind of job and of slot, clause by clause.
"""

from outrider_adapters.htcondor.eligibility.eligibility_watch import EligibilityWatch

__all__ = ["EligibilityWatch"]
