"""Asking the twin once about the policies of a configuration; whatever goes wrong is an answer."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import structlog

from outrider.api.policy import Policy
from outrider.model.errors import OutriderError
from outrider.plugins.making import make_policy
from outrider.service.config.declarations import acting_of, policies_of, twin_of
from outrider.service.config.loaded import LoadedConfig
from outrider.twin.asking import ask_twin

_NO_ANSWER: Final[dict[str, Any]] = {
    "window": None, "incumbent": None, "longest_deferral_s": None, "fidelity": None,
    "refused": None, "past": {},
    "next": None, "next_refused": None, "candidates_refused": {}, "fitted": {}, "basis": {},
}  # fmt: skip

log = structlog.get_logger()


class Asked(NamedTuple):
    """What became of an asking.

    Attributes:
        answer: as ``outrider twin --json``.
        failed: it could not be done, which another time may.
    """

    answer: dict[str, Any]
    failed: bool = False


def no_answer(why: str) -> dict[str, Any]:
    """An answer that says nothing but why there is none."""
    return _NO_ANSWER | {"refused": why}


def candidates_of(loaded: LoadedConfig) -> dict[str, dict[str, Any]]:
    """The policies to ask about, with their settings: those that can be made."""
    return {
        name: dict(given)
        for name, given in policies_of(loaded.config).items()
        if f"policies.{name}" not in loaded.broken
    }


def ask(loaded: LoadedConfig, journal: Path) -> Asked:
    """Ask the twin about the policies of a configuration.

    Args:
        loaded: the configuration.
        journal: of its daemon, which may be writing it.
    """
    candidates = candidates_of(loaded)
    if not candidates:
        why = "; ".join(loaded.broken.values()) or "no policy is configured"
        return Asked(no_answer(f"no policy can be made: {why}"), failed=True)
    try:
        return Asked(_answer(loaded, journal, candidates))
    except OutriderError as error:
        return Asked(no_answer(str(error)), failed=True)
    except Exception as error:
        log.exception("fail_twin")
        why = f"a fault of Outrider's own, or of a policy: {type(error).__name__}: {error}"
        return Asked(no_answer(why), failed=True)


def _answer(
    loaded: LoadedConfig, journal: Path, candidates: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    settings = twin_of(loaded.config)
    return ask_twin(
        journal, list(candidates), maker_of(loaded, candidates), replicates=settings.replicates,
        next_weeks=settings.next_weeks, seed=settings.seed,
        longest_deferral_s=acting_of(loaded.config).longest_deferral_s,
    ).to_json()  # fmt: skip


def maker_of(
    loaded: LoadedConfig, candidates: Mapping[str, Mapping[str, Any]]
) -> Callable[[str, int], Policy]:
    """What makes a candidate as the daemon does, and the incumbent as it is by itself."""

    def make(name: str, seed: int) -> Policy:
        options = dict(candidates.get(name, {}))
        preset = options.pop("preset", None)
        return make_policy(name, options, seed, f"{loaded.source} [policies.{name}]", preset)

    return make
