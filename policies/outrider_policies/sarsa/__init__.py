"""A learned order of the queue: SARSA on utility and fairness (Perez et al. 2008)."""

from outrider_policies.sarsa.policy import Sarsa
from outrider_policies.sarsa.settings import SarsaSettings

__all__ = ["Sarsa", "SarsaSettings"]
