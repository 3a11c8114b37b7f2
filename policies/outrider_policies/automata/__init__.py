"""Learning automata that learn which user to serve next and which node to send a job to."""

from outrider_policies.automata.policy import Automata
from outrider_policies.automata.settings import AutomataSettings

__all__ = ["Automata", "AutomataSettings"]
