"""Off-policy checks from the journal of a daemon alone: `off_policy_of_journal`.

Where the incumbent chooses at random, each start is an experiment: runs that happen to be where a
candidate would have sent them show what would have come of that, weighted by how likely they were.
It is a check on the twin, which simulates, and no forecast.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import structs

from outrider.api.capabilities import Plans
from outrider.api.policy import Policy
from outrider.engine import PolicyRunner
from outrider.engine.state.site import Site
from outrider.formats.campus.site_file import NO_REBOOT
from outrider.ledger.site_facts import SiteFacts, facts_on_record
from outrider.model.disciplines import FIRST_FIT
from outrider.model.errors import ConfigurationError
from outrider.model.localtime import day_second
from outrider.model.site_habits import SiteHabits
from outrider.plugins.making import make_policy
from outrider.plugins.random_streams import stream
from outrider.twin.off_policy.candidates import DecisionsOnRecord
from outrider.twin.off_policy.check import OffPolicyCheck, check_of
from outrider.twin.off_policy.recorded_starts import clock_of, recorded_starts

UNIFORM: Final = frozenset({"random_match", "user_priority"})
"""Incumbents that start a job on any machine that can take it, all equally likely."""
LEVEL: Final = 0.9
_RECONSIDER_S: Final = 3600.0
_NO_FACTS: Final = SiteFacts(FIRST_FIT, SiteHabits(), ())


def off_policy_of_journal(
    path: Path,
    policies: Sequence[str | Policy] = (),
    recorded: Sequence[str] = (),
    incumbent: str | None = None,
    level: float = LEVEL,
    seed: int = 0,
) -> dict[str, OffPolicyCheck]:
    """What the starts in a journal say of candidates, one step at a time.

    The journal is only read.

    Args:
        path: the journal of a daemon.
        policies: candidates that are asked: names, or policies that were made with settings of
            their own. They begin with nothing learned and learn, in shadow, from the journal.
        recorded: names of policies that ran in the daemon's shadow: what they decided then counts.
        incumbent: the policy, by name, that started the jobs; None: as the journal has it.
        level: the probability with which intervals should hold the truth, between 0 and 1.
        seed: of the chance of candidates.

    Returns:
        A check of each candidate, by its name.

    Raises:
        ConfigurationError: a candidate is given twice, or `level` is no probability.
        LedgerError: the journal cannot be read.
        PluginError: there is no such policy, or it cannot be made.
    """
    if not 0.0 < level < 1.0:
        raise ConfigurationError(f"level {level:g}: right would be between 0 and 1, as in 0.9")
    made = [make_policy(p, {}, seed, "off-policy") if isinstance(p, str) else p for p in policies]
    names = [*(policy.name for policy in made), *recorded]
    if len(set(names)) < len(names):
        raise ConfigurationError(f"off-policy: a policy is given more than once: {names}")
    facts = facts_on_record(path) or _NO_FACTS
    if incumbent is None and facts.incumbent is not None:
        incumbent = facts.incumbent.policy
    unfit = _unfit(incumbent)
    decided = DecisionsOnRecord.of(path, recorded)
    refused: dict[str, list[str]] = {policy.name: [*unfit, *_unasked(policy)] for policy in made}
    refused |= {name: [*unfit, *_unheard(name, decided)] for name in recorded}
    asked = {
        name: OffPolicyCheck(policy=name, incumbent=incumbent, level=level, refused=tuple(why))
        for name, why in refused.items()
    }
    if all(refused.values()):
        return asked
    runners = [
        PolicyRunner(
            policy, acting=False, reconsider_s=facts.habits.reconsider_s or _RECONSIDER_S,
            strict=False, discipline=facts.discipline,
        )
        for policy in made
        if not refused[policy.name]
    ]  # fmt: skip
    site = Site(clock_of(path), list(facts.clusters), _reboot_s(facts.habits))
    rng = stream(seed, "off-policy")
    gathered, counted = recorded_starts(path, site, runners, decided, rng)
    broken = {runner.name: (runner.broken,) for runner in runners if runner.broken}
    for name, before in asked.items():
        if not before.refused:
            check = structs.replace(before, refused=broken.get(name, ()))
            table = gathered.table(name)
            asked[name] = check_of(check, table, counted, gathered.left_out(table))
    return asked


def _reboot_s(habits: SiteHabits) -> float | None:
    return None if habits.reboot in (None, NO_REBOOT) else day_second(str(habits.reboot))


def _unfit(incumbent: str | None) -> list[str]:
    """Why nothing can be said of any candidate."""
    if incumbent is None:
        return ["which policy started the jobs is not known: no adapter of the journal names one"]
    if incumbent not in UNIFORM:
        right = ", ".join(sorted(UNIFORM))
        why = "does not choose machines at random, and what it never does cannot be weighed"
        return [f"the incumbent {incumbent} {why}; right would be {right}"]
    return []


def _unasked(policy: Policy) -> list[str]:
    """Why a candidate cannot be asked."""
    told = []
    if isinstance(policy, Plans):
        told.append(f"{policy.name} plans whole passes: it chooses no machine for one start")
    if policy.needs_oracle:
        told.append(f"{policy.name} needs true run times, which no record has before a run ends")
    return told


def _unheard(name: str, decided: DecisionsOnRecord) -> list[str]:
    """Why a candidate on record tells nothing."""
    return [] if decided.said[name] else [f"the journal holds no decision of {name}"]
