"""Levers on a real Slurm, used as by a daemon, but one call at a time."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from outrider.api import DecisionRow, Undo, UndoLog
from outrider_adapters.slurm.acting.lever import LeasedStartTimes
from outrider_adapters.slurm.adapter import SlurmAdapter
from outrider_adapters.slurm.settings import SlurmSettings
from tests.peers.beside_slurm.watched import of_slurm
from tests.peers.slurm import Slurm

LEASE_S = 12
PROGRAMS = ("sacctmgr", "sbatch", "scancel", "scontrol", "sdiag", "sprio", "squeue")


def name(job: str) -> str:
    """Return Outrider's name of a job, from its id; a name is unchanged."""
    return job if ":" in job else f"outrider:{job}"


def decision(job: str, action: str) -> DecisionRow:
    """Return a decision of the policy about a job."""
    return DecisionRow(0.0, name(job), action, None, 1, "best", "bandit", "active", gate="act")


@contextmanager
def as_user(slurm: Slurm, uid: int) -> Iterator[dict[str, Any]]:
    """Yield settings of an adapter whose commands run as this user, with files that it may read."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        config = folder / "slurm.conf"
        config.write_text(Path(slurm.environment["SLURM_CONF"]).read_text())
        for program in PROGRAMS:
            script = folder / program
            words = f"setpriv --reuid={uid} --regid={uid} --clear-groups {shutil.which(program)}"
            script.write_text(f'#!/bin/sh\nexec {words} "$@"\n')
            script.chmod(0o755)
        yield {"config": str(config), "commands": made}


class Site:
    """Slurm, its adapter's undo log, and levers on it.

    Args:
        slurm: the Slurm.
        undo_log: of a daemon before.
        label: of the adapter.
        settings: of the adapter; without more it keeps no fence.
    """

    def __init__(
        self,
        slurm: Slurm,
        undo_log: UndoLog | None = None,
        label: str = "slurm",
        **settings: Any,
    ) -> None:
        self.slurm = slurm
        config = slurm.environment["SLURM_CONF"]
        of_site: dict[str, Any] = {"config": config, "lease_s": LEASE_S, "fence": False}
        self.adapter = SlurmAdapter(label, SlurmSettings(**(of_site | settings)))
        if undo_log is not None:
            self.adapter.undo_log = undo_log
        self.adapter.identity = f"{label}@here:/state/{id(self.adapter.undo_log)}"

    def lever(self, off_s: float = 0.0) -> LeasedStartTimes:
        """Return a new lever, as after a restart; this host's clock is off by `off_s`."""
        return LeasedStartTimes(self.adapter, lambda: time.time() + off_s)

    def defer(self, *jobs: str, off_s: float = 0.0) -> dict[str, str]:
        """Defer jobs and return the refusals, by job."""
        return self._asked(lambda lever: lever.apply([decision(j, "defer") for j in jobs]), off_s)

    def start(self, *jobs: str) -> dict[str, str]:
        """Start jobs and return the refusals, by job."""
        return self._asked(lambda lever: lever.apply([decision(j, "start") for j in jobs]))

    def withdraw(self, *jobs: str) -> dict[str, str]:
        """Withdraw jobs and return the refusals, by job."""
        return self._asked(lambda lever: lever.withdraw([name(job) for job in jobs]))

    def _asked(
        self, call: Callable[[LeasedStartTimes], Mapping[str, str]], off_s: float = 0.0
    ) -> dict[str, str]:
        with closing(self.lever(off_s)) as lever:
            refused = call(lever)
        return {job.removeprefix("outrider:"): why for job, why in refused.items()}

    def eligible_s(self, job: str) -> float:
        """Return when a job may begin, as reported by Slurm."""
        return float(of_slurm(self.slurm, job)["EligibleTime"])

    def ahead_s(self, job: str) -> float:
        """Return how far its start time lies ahead; 0 if it does not."""
        return max(0.0, self.eligible_s(job) - time.time())

    def noted(self, job: str) -> Undo:
        """Return the note on a job: the value before its start time."""
        return self.adapter.undo_log.entries[name(job)]
