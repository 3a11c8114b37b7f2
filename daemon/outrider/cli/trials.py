"""Trials: a campus under one policy with one seed, and the run object that comes of it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from outrider.api.make import make_policy
from outrider.api.policy import Policy
from outrider.lab.cells import effective_settings
from outrider.ledger import LedgerFile, LedgerHash
from outrider.model.decisions import Choice
from outrider.replay.run import CampusRun, Keep
from outrider.virtual.campus import Campus

ACTING = "active"
"""The mode of a replay's ledger rows: the one policy of the run does act on the virtual site."""


class Terms(NamedTuple):
    """What all trials of one command have in common.

    Attributes:
        settings: given settings, by policy.
        presets: the preset asked for, by policy.
        until_s: stop after this second of the trace; None: at its end.
        shares: fair shares by VO; empty: equal.
    """

    settings: Mapping[str, dict[str, Any]]
    presets: Mapping[str, str | None]
    until_s: float | None = None
    shares: Mapping[str, float] = {}

    def make(self, name: str, seed: int) -> Policy:
        """A fresh policy. Raises `ConfigurationError`, `PluginError`."""
        where = f"--set {name}"
        return make_policy(name, self.settings[name], seed, where, self.presets[name])


class Trial(NamedTuple):
    """One run: which trace, under which policy, with which seed; its ledger goes to `ledger`."""

    trace: str
    policy: str
    seed: int
    ledger: Path | None


def run_trial(
    trial: Trial, campus: Campus, terms: Terms, progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Run one trial.

    Returns:
        FORMATS' run object, and beside it `preset`, `until_s` and `ledger`.

    Raises:
        ConfigurationError, PluginError: the policy cannot be made.
        LedgerError: the ledger cannot be written.
    """
    policy = terms.make(trial.policy, trial.seed)
    policy.wants_scores = trial.ledger is not None
    digest = LedgerHash()
    with ExitStack() as stack:
        keep: Keep = hashed(digest)
        ledger = None
        if trial.ledger is not None:
            ledger = stack.enter_context(LedgerFile(trial.ledger))
            keep = hashed_and_written(digest, ledger)
        # A trace ends: whatever is asked beyond its end would be no part of it.
        until_s = None if terms.until_s is None else min(terms.until_s, campus.span_s)
        run = CampusRun(campus, [policy], keep, until_s, shares=dict(terms.shares))
        about: dict[str, Any] = {
            "trace": trial.trace,
            "policy": trial.policy,
            "settings": effective_settings(policy, run.seats[0].reconsider_s),
            "seed": trial.seed,
            "preset": terms.presets[trial.policy],
            "until_s": until_s,
        }
        measured = run.run(progress)
        if ledger is not None:
            ledger.meta |= about
    place = None if trial.ledger is None else str(trial.ledger)
    return about | measured | {"ledger_sha256": digest.hexdigest(), "ledger": place}


def hashed(digest: LedgerHash) -> Keep:
    """Keeps nothing of a decision but its part in the hash."""
    add = digest.add

    def keep(
        time_s: float, job: str, action: str, machine: str | None, cpus: int, reason: str,
        policy: str, choice: Choice | None,
    ) -> None:  # fmt: skip
        add(time_s, job, action, machine, cpus)

    return keep


def hashed_and_written(digest: LedgerHash, ledger: LedgerFile) -> Keep:
    """Hashes every decision and writes it to a ledger file."""

    def keep(
        time_s: float, job: str, action: str, machine: str | None, cpus: int, reason: str,
        policy: str, choice: Choice | None,
    ) -> None:  # fmt: skip
        digest.add(time_s, job, action, machine, cpus)
        chance, scores = (None, None) if choice is None else (choice.propensity, choice.scores)
        ledger.add(time_s, job, action, machine, cpus, reason, policy, ACTING, chance, scores)

    return keep


def plan(
    trace: str, policies: list[str], seeds: range, ledger: Path | None, several_traces: bool
) -> Iterator[Trial]:
    """The trials of one trace, each with a ledger file of its own where one is wanted."""
    several = several_traces or len(policies) * len(seeds) > 1
    for policy in policies:
        for seed in seeds:
            place = ledger
            if ledger is not None and several:
                front = f"-{Path(trace).resolve().name}" if several_traces else ""
                place = ledger.with_name(f"{ledger.stem}{front}-{policy}-{seed}{ledger.suffix}")
            yield Trial(trace, policy, seed, place)
