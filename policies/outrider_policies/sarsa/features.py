"""What the policy sees: the site, followed event by event, told in features."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, SiteView
from outrider_policies.sarsa.encodings import ENCODINGS
from outrider_policies.sarsa.job_features import Ask, Asks
from outrider_policies.sarsa.mean_runs import MeanRuns
from outrider_policies.sarsa.site_state import Shares, SiteBooks

Floats = NDArray[np.float64]


class Sight:
    """The site's state, its mean runs, and the features made of both.

    Args:
        encoding: by its name in the settings.

    Attributes:
        runs: the yardstick.
        inputs_n: features of a state and an action.
    """

    def __init__(self, encoding: str) -> None:
        self.runs = MeanRuns()
        self._books = SiteBooks()
        self._encoding = ENCODINGS[encoding]()
        self.inputs_n = self._encoding.state_n + self._encoding.action_n

    # -- what happens -------------------------------------------------------------------------

    def enter(self, job: Job, view: SiteView) -> None:
        """A job got in line."""
        ask = Ask.of(job, view.now)
        self._books.enter(job.number, ask, self._expected_s(ask) * ask.cpus)

    def leave(self, job: Job) -> None:
        """A job left the line."""
        self._books.leave(job.number)

    def start(self, job: Job, view: SiteView) -> None:
        """A job left the line, for it runs."""
        ask = Ask.of(job, view.now)
        run_s = self._expected_s(ask)
        utility = view.utility(job).unit(view.now - ask.submit_s + run_s, run_s)
        self._books.leave(job.number)
        self._books.start(job.number, view.now + run_s, float(utility))

    def end(self, number: int) -> None:
        """A run is over."""
        self._books.end(number)

    def count_cpus_anew(self) -> None:
        """CPUs came or went."""
        self._books.count_cpus_anew()

    def _expected_s(self, ask: Ask) -> float:
        asks = Asks.of_jobs([ask])
        return float(self.runs.expected_s(asks.estimate_s, asks.interactive)[0])

    # -- what is seen -------------------------------------------------------------------------

    def state(self, view: SiteView) -> tuple[Floats, Shares]:
        """Features of the site as it is, and the VOs' shares, which those of jobs ask for."""
        state = self._books.state(view)
        return self._encoding.state(state, self.runs), state.shares

    def drain_s(self, view: SiteView) -> float:
        """Seconds it would take to work off all that waits: what oldest first makes one wait."""
        return self._books.drain_s(view)

    def actions(self, asks: Asks, shares: Shares) -> Floats:
        """Features of starting each of the jobs."""
        return self._encoding.actions(asks, shares, self.runs)

    def inputs(self, job: Job, state: Floats, view: SiteView) -> Floats:
        """Features of a state, and of starting a job in it."""
        asks = Asks.of_jobs([Ask.of(job, view.now)])
        return np.concatenate([state, self.actions(asks, view.vo_shares())[0]])

    def line(self) -> dict[int, Ask]:
        """Who waits, by number."""
        return {number: ask for number, (ask, _) in self._books.waiting.items()}

    def save(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "encoding": self._encoding.save(),
            "books": self._books.save(),
            "runs": self.runs.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._encoding.restore(saved["encoding"])
        self._books.restore(saved["books"])
        self.runs.restore(saved["runs"])
