"""Plugins of a running daemon: a runner for each policy, and guards around the others."""

from collections.abc import Mapping
from math import isfinite
from typing import Any

import numpy as np
import structlog
from numpy.typing import NDArray

from outrider.api.estimator import RunTimeEstimate, RunTimeEstimator
from outrider.engine import PolicyRunner
from outrider.model import utility
from outrider.model.errors import OutriderError, PluginError
from outrider.model.jobs import Job, JobSpec
from outrider.model.utility import DEFAULT_UTILITIES, Seconds, TimeUtility, utility_of
from outrider.plugins.finding import make_policy
from outrider.service.config.declarations import acting_of, policies_of
from outrider.service.config.loaded import LoadedConfig

# -- policies --------------------------------------------------------------------------------------
# The policies of a configuration: a runner for each that can be created, an error for the others.

_TABLE = "policies."
log = structlog.get_logger()


def make_runners(loaded: LoadedConfig) -> list[PolicyRunner]:
    """Return runners of a configuration's policies, in shadow; none in mode `observe`.

    A policy that cannot be loaded or created gets none: `loaded.broken` contains the error.

    Raises:
        ConfigurationError: a setting is wrong.
    """
    if loaded.config.mode == "observe":
        return []
    runners = []
    for name, given in policies_of(loaded.config).items():
        if _TABLE + name not in loaded.broken:
            try:
                runners.append(_runner(loaded, name, given))
            except PluginError as error:
                loaded.broken[_TABLE + name] = str(error)
    return runners


def policies_without_runner(loaded: LoadedConfig) -> dict[str, str]:
    """Return the configured policies that could not be created, by name, each with its error."""
    if loaded.config.mode == "observe":
        return {}
    return {
        table.removeprefix(_TABLE): why
        for table, why in loaded.broken.items()
        if table.startswith(_TABLE)
    }


def _runner(loaded: LoadedConfig, name: str, given: Mapping[str, Any]) -> PolicyRunner:
    config, options = loaded.config, dict(given)
    where = f"{loaded.source} [{_TABLE}{name}]"
    policy = make_policy(name, options, config.seed, where, options.pop("preset", None))
    discipline = loaded.discipline().name
    try:
        made = PolicyRunner(policy, False, config.reconsider_s, strict=False, discipline=discipline)
        made.awaits_starts = config.mode == "active" and acting_of(config).admission_control
        return made
    except OutriderError:
        raise
    except Exception as error:  # reads declarations of the policy: a plugin's code
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f'{where}: policy "{name}" fails while it is made: {what}') from error


class LostPolicyLog:
    """Log of policies that are not available or have failed: one line for each."""

    def __init__(self) -> None:
        self._logged: dict[str, str] = {}

    def note(self, lost: Mapping[str, str]) -> None:
        """Log the newly lost policies among these, given by name, each with its reason."""
        for name, why in lost.items():
            if self._logged.get(name) != why:
                log.error("policy_failed", policy=name, error=why)
        self._logged = dict(lost)


# -- guards ----------------------------------------------------------------------------------------
# Guards around plugins other than policies: estimators and time utility functions.
#
# Policies are guarded by their runner (`outrider.engine.scheduling.policy_runner`). These two are
# called in the middle of an event or of a report, and there is always a fallback without them. The
# failure is reported once, as a note.


class GuardedEstimator(RunTimeEstimator):
    """An estimator that returns no estimates after its first failure.

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
        """Return the plugin's estimate if possible, else None: then the user's request counts."""
        if self.broken:
            return None
        try:
            made = self._estimator.estimate(spec, now)
            if made is not None and not (isfinite(made.median_s) and made.median_s >= 0.0):
                raise ValueError(f"estimated {made.median_s!r} s: expected seconds >= 0")
        except Exception as error:  # noqa: BLE001 - a plugin's code
            self._fail(error)
            return None
        return made

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Let the plugin learn from a run, unless it has failed."""
        if not self.broken:
            try:
                self._estimator.learn(job, run_s, now)
            except Exception as error:  # noqa: BLE001 - a plugin's code
                self._fail(error)

    def save(self) -> dict[str, Any]:
        """Return the plugin's learned state; empty if it fails to save it."""
        try:
            return self._estimator.save()
        except Exception as error:  # noqa: BLE001 - a plugin's code
            self._fail(error)
            return {}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` if that does not fit."""
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
    """A time utility function, replaced by the default of its class after its first failure.

    Args:
        plugin: a function that is not part of Outrider.
        job_class: the class of jobs that it applies to.

    Attributes:
        broken: the error after which it was not asked again; empty: none.
    """

    def __init__(self, plugin: TimeUtility, job_class: str) -> None:
        self.broken = ""
        self._plugin = plugin
        self._job_class = job_class

    def unit(self, turnaround_s: Seconds, ideal_s: Seconds) -> NDArray[np.float64]:
        """Return the plugin's utilities; those of the class's default if it fails."""
        if not self.broken:
            try:
                values = np.asarray(self._plugin.unit(turnaround_s, ideal_s), dtype=float)
                if values.shape != np.shape(turnaround_s):
                    raise ValueError(f"shape {values.shape}, expected {np.shape(turnaround_s)}")
            except Exception as error:  # noqa: BLE001 - a plugin's code
                name = type(self._plugin).__name__
                self.broken = (
                    f'utility "{name}" failed: {type(error).__name__}: {error}; the default of '
                    f"class {self._job_class} counts instead"
                )
            else:
                return values
        return utility_of(DEFAULT_UTILITIES, self._job_class).unit(turnaround_s, ideal_s)


def guarded_utilities(utilities: dict[str, TimeUtility]) -> dict[str, TimeUtility]:
    """Return the same functions, with a guard around those of plugins."""
    return {
        job_class: found
        if type(found).__module__ == utility.__name__
        else GuardedUtility(found, job_class)
        for job_class, found in utilities.items()
    }
