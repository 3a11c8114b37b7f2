"""Learning automata that choose the next user to serve and the node for a job."""

from outrider_policies.automata.policy import Automata
from outrider_policies.automata.settings import AutomataSettings

__all__ = ["Automata", "AutomataSettings"]
