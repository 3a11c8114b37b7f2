"""The policies of a configuration: a runner for each that can be made, a reason for the others."""

from collections.abc import Mapping
from typing import Any

import structlog

from outrider.engine import PolicyRunner
from outrider.model.errors import OutriderError, PluginError
from outrider.plugins.making import make_policy
from outrider.service.config.declarations import acting_of, policies_of
from outrider.service.config.loaded import LoadedConfig

_TABLE = "policies."

log = structlog.get_logger()


def make_runners(loaded: LoadedConfig) -> list[PolicyRunner]:
    """Runners of a configuration's policies, in shadow; none in mode `observe`.

    A policy that cannot be loaded or made gets none: `loaded.broken` says why.

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
    """Names of the policies that should be asked and could not be made, and why."""
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
    except Exception as error:  # it reads what the policy declares: a plugin's code
        what = f"{type(error).__name__}: {error}"
        raise PluginError(f'{where}: policy "{name}" fails while it is made: {what}') from error


class LostPolicyLog:
    """One line in the log for each policy that is not asked, or not any more, and why."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def note(self, lost: Mapping[str, str]) -> None:
        """These policies are lost now, by name, each with its reason."""
        for name, why in lost.items():
            if self._told.get(name) != why:
                log.error("lose_policy", policy=name, reason=why)
        self._told = dict(lost)
