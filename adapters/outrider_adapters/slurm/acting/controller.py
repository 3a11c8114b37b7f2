"""The controller of a Slurm as levers ask it: what time it is, whose jobs it has, what is set."""

import re
from collections.abc import Callable
from math import inf
from typing import Final

from outrider.api import PeerError
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.partitions import settings_of
from outrider_adapters.slurm.rights import acting_users

_CLOCK: Final = re.compile(r"^sdiag output at .*\((\d+)\)", re.MULTILINE)
_ASK_AGAIN_S: Final = 300.0


class Controller:
    """Answers of the controller that hold for all jobs; what is set is asked anew after a while.

    Args:
        commands: of the Slurm.
        lease_s: how long a change lasts that is not renewed.
        now: this host's clock, Unix seconds.
    """

    def __init__(self, commands: SlurmCommands, lease_s: float, now: Callable[[], float]) -> None:
        self.commands = commands
        self.lease_s = lease_s
        self._now = now
        self._config: dict[str, str] = {}
        self._acting_users: frozenset[str] = frozenset()
        self._asked_s = -inf

    def now_s(self) -> int:
        """Its clock, Unix seconds.

        Raises:
            PeerError: it does not answer, or the clock differs from this host's by more than a
                quarter of a lease.
        """
        shown = _CLOCK.search(self.commands.run("sdiag"))
        if shown is None:
            raise PeerError('sdiag does not tell the time; right would be "sdiag output at ..."')
        off_s = int(shown[1]) - self._now()
        if abs(off_s) > self.lease_s / 4.0:
            raise PeerError(
                f"the controller's clock differs by {off_s:+.0f} s from this host's; right would "
                f"be less than a quarter of lease_s, {self.lease_s / 4.0:g} s"
            )
        return int(shown[1])

    def config(self) -> dict[str, str]:
        """What is set, by name; as of the last five minutes. Raises `PeerError`: no answer."""
        self._ask()
        return self._config

    def acting_users(self) -> frozenset[str]:
        """Who may change everybody's jobs, and this process's user; as `config`."""
        self._ask()
        return self._acting_users

    def id_of(self, name: str) -> str:
        """A job's id, from its name; that of another cluster's job is none here."""
        return name.removeprefix(f"{self.config().get('ClusterName', '')}:")

    def _ask(self) -> None:
        now_s = self._now()
        if not 0.0 <= now_s - self._asked_s < _ASK_AGAIN_S:
            self._config = settings_of(self.commands.run("scontrol", "show", "config"))
            self._acting_users = acting_users(self.commands, self._config)
            self._asked_s = now_s
