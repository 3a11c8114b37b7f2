"""Learning automata that choose the next user to serve and the node for a job."""

from outrider_policies.automata.nodes import AutomataSettings
from outrider_policies.automata.policy import Automata

__all__ = ["Automata", "AutomataSettings"]
