"""Small sites with known ends, and their daemons' states, including shadow policies."""

import random
import time
from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import Any

from outrider.api import Policy
from outrider.engine import Engine, EventMerger, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.ingest.machine_registry import inferred_machine
from outrider.engine.state.site import Site
from outrider.forecast.candidate_starts import CandidateStarts
from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.present import Present, SiteRules
from outrider.journal import Entry, Journal
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec
from outrider.model.modes import FIRST_FIT, Discipline
from outrider.plugins.finding import make_policy
from outrider.replay.log_files import NoDecisionLog

BEGIN_S = 1_600_000_000.0
NOW_S = BEGIN_S + 20 * 3_600.0
SHORT_S, LONG_S = 600.0, 5_000.0
SHORT = JobSpec(user="short", estimate_s=SHORT_S)
LONG = JobSpec(user="long", estimate_s=LONG_S)
MIXED = JobSpec(user="mixed", estimate_s=LONG_S)


def ended(
    machine: str,
    runs: int = 5,
    specs: Sequence[tuple[JobSpec, float]] = ((SHORT, SHORT_S), (LONG, LONG_S)),
) -> list[NamedEvent]:
    """Return a machine on which jobs of these kinds and lengths ran one after another."""
    joined = MachineSpec(cluster="pool", usable=True)
    events: list[NamedEvent] = [(BEGIN_S, ev.JOINED, machine, joined)]
    at_s = BEGIN_S
    for number in range(runs):
        for place, (spec, run_s) in enumerate(specs):
            name = f"{machine}-{place}-{number}"
            events += [
                (at_s, ev.SUBMITTED, name, spec),
                (at_s + 1.0, ev.STARTED, name, (machine, 1)),
                (at_s + 1.0 + run_s, ev.COMPLETED, name, None),
            ]
            at_s += run_s + 2.0
    return events


def busy(machine: str, since_s: float, spec: JobSpec = LONG) -> list[NamedEvent]:
    """Return the events of a job that runs there since then."""
    name = f"{machine}-now"
    return [(since_s, ev.SUBMITTED, name, spec), (since_s, ev.STARTED, name, (machine, 1))]


def journal_of(events: Sequence[NamedEvent], path: Path, now_s: float = NOW_S) -> Path:
    """Write the journal of a daemon that has seen everything until now."""
    ordered = sorted(events, key=lambda event: event[0])
    with Journal(path) as journal:
        rows = [("log", event) for event in [*ordered, (now_s, ev.TICK, "log", None)]]
        journal.append(Entry(inputs=rows))
    return path


def starts_under(
    path: Path,
    *policies: Callable[[], Policy] | str,
    discipline: Discipline = FIRST_FIT,
    budget_s: float = 600.0,
    clock: Callable[[], float] = time.monotonic,
    longest_deferral_s: float = inf,
) -> dict[str, Any]:
    """Return (replicates, jobs) Unix seconds under each policy, or the error of its failure.

    `jobs` has the names of the jobs.
    """
    ways = [_way(policy) for policy in policies]
    site = FollowedSite(path)
    for _ in site.catch_up():
        pass
    present = _present(path, [way() for way in ways], discipline, longest_deferral_s)
    made = {way().name: way for way in ways}
    ahead = CandidateStarts(present, site, lambda name, _: made[name](), 0, clock)
    found: dict[str, Any] = {"jobs": ahead.jobs}
    for name in made:
        try:
            found[name] = ahead.starts_s(name, budget_s)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            found[name] = error
    return found


def _way(policy: Callable[[], Policy] | str) -> Callable[[], Policy]:
    if isinstance(policy, str):
        name = policy
        return lambda: make_policy(name, {}, 0, "test")
    return policy


def _present(
    path: Path, policies: Sequence[Policy], discipline: Discipline, longest_deferral_s: float
) -> Present:
    """Return the state of a daemon that ran these policies in shadow all the time."""
    utc, merger = ZoneTime("UTC"), EventMerger((), inferred_machine)
    site = Site(utc, [])
    runners = [
        PolicyRunner(policy, False, 3_600.0, strict=False, discipline=discipline)
        for policy in policies
    ]
    engine = Engine(site, Accounting(utc), runners, merger, NoDecisionLog())
    with Journal(path, read_only=True) as journal:
        for _, label, event in journal.inputs_after(0):
            if event[1] == ev.TICK:
                engine.feed(merger.advance(event[0]))
                engine.reach(event[0])
            else:
                merger.arrive(label, (event,))
    rules = SiteRules(discipline, 3_600.0, None, {}, lambda: None, longest_deferral_s)
    names = merger.normaliser
    return Present(engine, rules, names.job_names, names.machine_names)


def chance() -> random.Random:
    return random.Random(0)
