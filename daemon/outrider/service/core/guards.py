"""Guards around plugins other than policies: estimators and time utility functions.

Policies are guarded by their runner (`outrider.engine.scheduling.policy_runner`). These two are
asked in the middle of an event or of a report, and there is always an answer that does without
them; the failure is told once, as a note.
"""

from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.api.estimator import RunTimeEstimate, RunTimeEstimator
from outrider.model import utility
from outrider.model.jobs import Job, JobSpec
from outrider.model.utility import DEFAULT_UTILITIES, Seconds, TimeUtility, utility_of


class GuardedEstimator(RunTimeEstimator):
    """An estimator that gives no more estimates once it has failed.

    Args:
        estimator: of a plugin.

    Attributes:
        broken: the error after which it was not asked again; empty: none.
    """

    def __init__(self, estimator: RunTimeEstimator) -> None:
        super().__init__(estimator.settings, estimator.rng)
        self.broken = ""
        self._estimator = estimator

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        """The plugin's estimate if it is possible, else None: then the user's request counts."""
        if self.broken:
            return None
        try:
            said = self._estimator.estimate(spec, now)
            if said is not None and not (isfinite(said.median_s) and said.median_s >= 0.0):
                raise ValueError(f"estimated {said.median_s!r} s: right would be seconds >= 0")
        except Exception as error:  # noqa: BLE001 - a plugin's code
            self._fail(error)
            return None
        return said

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """The plugin learns, unless it has failed."""
        if not self.broken:
            try:
                self._estimator.learn(job, run_s, now)
            except Exception as error:  # noqa: BLE001 - a plugin's code
                self._fail(error)

    def save(self) -> dict[str, Any]:
        """What the plugin learned; nothing if it fails at saying it."""
        try:
            return self._estimator.save()
        except Exception as error:  # noqa: BLE001 - a plugin's code
            self._fail(error)
            return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if that does not fit."""
        try:
            self._estimator.restore(saved)
        except ValueError:
            raise
        except Exception as error:  # noqa: BLE001 - a plugin's code
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        name = type(self._estimator).__name__
        self.broken = (
            f'run time estimator "{name}" failed: {type(error).__name__}: {error}; what users '
            "asked for counts instead"
        )


class GuardedUtility:
    """A time utility function that gives way to the default of its class once it has failed.

    Args:
        plugin: a function that does not come with Outrider.
        job_class: the class of jobs that it is for.

    Attributes:
        broken: the error after which it was not asked again; empty: none.
    """

    def __init__(self, plugin: TimeUtility, job_class: str) -> None:
        self.broken = ""
        self._plugin = plugin
        self._job_class = job_class

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """As the plugin says; the default of the class where it fails."""
        if not self.broken:
            try:
                said = np.asarray(self._plugin.unit(turnaround_s, ideal_s), dtype=float)
                if said.shape != np.shape(turnaround_s):
                    raise ValueError(f"shape {said.shape}, right: {np.shape(turnaround_s)}")
            except Exception as error:  # noqa: BLE001 - a plugin's code
                name = type(self._plugin).__name__
                self.broken = (
                    f'utility "{name}" failed: {type(error).__name__}: {error}; the default of '
                    f"class {self._job_class} counts instead"
                )
            else:
                return said
        return utility_of(DEFAULT_UTILITIES, self._job_class).unit(turnaround_s, ideal_s)


def guarded_utilities(utilities: dict[str, TimeUtility]) -> dict[str, TimeUtility]:
    """The same, those of plugins behind a guard."""
    return {
        job_class: found
        if type(found).__module__ == utility.__name__
        else GuardedUtility(found, job_class)
        for job_class, found in utilities.items()
    }
