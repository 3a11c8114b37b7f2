"""Training before going live: a policy watches another decide, and what it learned is kept.

It sits in shadow and learns as it would beside a live site, through `observe`; nobody acts on
what it would do. Who decides is the behaviour policy: any on workloads (Perez et al. 2008, III.C:
an early deadline first policy), or the site's own scheduler in what was recorded of it (their
conclusion: calibrated "off-line by using the results of a real scheduler").
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from outrider import __version__
from outrider.api.capabilities import Learns
from outrider.api.policy import Policy
from outrider.model.errors import ConfigurationError, TraceError
from outrider.plugins.making import make_policy
from outrider.replay.effective_settings import effective_settings
from outrider_lab.training.demonstrations import Demonstration

FIRST_SEED: Final = 10_000
"""Synthetic workloads from this seed on train; those below judge."""
_START: Final = "start"
_AFRESH: Final = "none"


class Learner(NamedTuple):
    """Who is trained.

    Attributes:
        policy: name of the plugin.
        settings: given settings; they win over the preset's. A policy with a setting ``start``
            starts from ``none`` unless another is given.
        preset: one of the policy's named settings.
        seed: of its chance.
    """

    policy: str
    settings: Mapping[str, Any] = {}
    preset: str | None = None
    seed: int = 0

    def make(self, demonstration: int = 0) -> Policy:
        """A fresh one; each demonstration has a seed of its own.

        Raises:
            PluginError: it cannot be loaded.
            ConfigurationError: a setting or the preset is wrong, or it never learns.
        """
        where = f"train {self.policy}"
        afresh = {_START: _AFRESH} if self._has_a_start() else {}
        settings = {**afresh, **self.settings}
        policy = make_policy(self.policy, settings, self.seed + demonstration, where, self.preset)
        if not isinstance(policy, Learns):
            raise ConfigurationError(
                f"{where}: this policy does not learn from runs; right would be one that does"
            )
        policy.wants_scores = False
        return policy

    def _has_a_start(self) -> bool:
        from outrider.plugins.finding import load_policy

        return _START in load_policy(self.policy).settings_type.__struct_fields__


class Training(NamedTuple):
    """What came of it.

    Attributes:
        state: what the policy says another one may start from (`Learns.start_state`), or all that
            it saves.
        runs: that it learned from.
        about: who was trained by whom on what, as plain data.
    """

    state: dict[str, Any]
    runs: int
    about: dict[str, Any]


def train(
    learner: Learner,
    demonstrations: Sequence[Demonstration],
    progress: Callable[[float], None] | None = None,
) -> Training:
    """Let a policy watch every demonstration, one after the other; what it learned goes on with it.

    Raises:
        TraceError: a trace cannot be read, or the policy learned from no run at all.
        ConfigurationError: the policy cannot go on from one trace to the next.
    """
    if not demonstrations:
        raise ConfigurationError(f"train {learner.policy}: no trace to learn from")
    saved: dict[str, Any] | None = None
    runs = 0
    for number, demonstration in enumerate(demonstrations):
        policy = learner.make(number)
        shadowed = demonstration.beside(policy)
        if saved is not None:
            _go_on(policy, saved, shadowed.site, demonstration)
        shadowed.watch()
        runs += shadowed.runner.reward_n
        saved = policy.save(shadowed.site)
        if progress is not None:
            progress((number + 1) / len(demonstrations))
    if not runs:
        names = ", ".join(demonstration.name for demonstration in demonstrations)
        raise TraceError(
            f"{names}: {learner.policy} learned from no run; right would be traces in which runs "
            "begin and end, and a policy with learning switched on"
        )
    site = shadowed.site
    started = policy.start_state(site) if isinstance(policy, Learns) else None
    settings = effective_settings(policy, shadowed.runner.reconsider_s)
    about = {
        "policy": learner.policy,
        "preset": learner.preset,
        "settings": settings,
        "fingerprint": fingerprint(settings),
        "outrider": __version__,
        "seed": learner.seed,
        "behaviour_policies": sorted({demonstration.behaviour for demonstration in demonstrations}),
        "class_sources": sorted({demonstration.class_source for demonstration in demonstrations}),
        "truth": list(
            dict.fromkeys(told for demonstration in demonstrations for told in demonstration.truth)
        ),
        "traces": [demonstration.name for demonstration in demonstrations],
        "runs": runs,
    }
    return Training(policy.save(site) if started is None else started, runs, about)


def fingerprint(settings: Mapping[str, Any]) -> str:
    """SHA-256 of the settings as JSON with sorted keys: equal for equal settings, anywhere."""
    return hashlib.sha256(msgspec.json.encode(settings, order="sorted")).hexdigest()


def write_start(training: Training, path: Path) -> None:
    """Write a start file: the state, and under ``trained`` where it comes from.

    The same training gives the same bytes (on the same processor architecture and numpy).

    Raises:
        ConfigurationError: it cannot be written.
    """
    text = msgspec.json.encode({**training.state, "trained": training.about}, order="sorted")
    try:
        path.write_bytes(msgspec.json.format(text, indent=0) + b"\n")
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be written: {error.strerror}") from error


def _go_on(policy: Policy, saved: dict[str, Any], site: Any, demonstration: Demonstration) -> None:
    try:
        policy.restore(saved, site)
    except ValueError as error:
        raise ConfigurationError(
            f"train {policy.name}: what it learned does not fit {demonstration.name}: {error}; "
            "right would be traces of one site"
        ) from error
