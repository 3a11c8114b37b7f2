"""Coverage of start forecasts under a candidate policy, on simulated sites with known truth.

    python bench/candidate_coverage.py [--seeds 8] [--sites grid,campus] [--budget 1.5]
        [--small] [--json]

A grid without owners under `fifo` (first fit), and a campus with owners under `random_match`, are
followed through their journals. Every six hours the present state is simulated forward under the
same policy, and forecasts for up to 16 waiting jobs are compared with their next starts: the raw
replicates, and those shifted as the forecast under the incumbent's rule was. `incumbent` is that
forecast, for the same jobs at the same times. On the grid the same is done under `sjf`, which does
not act: the true starts come from another run from the same state, with true run times and
arrivals.
"""

import argparse
import datetime as dt
import json
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from options import parsed

from outrider.forecast.candidate_starts import CandidateStarts, Future
from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.outlook import Outlook
from outrider.forecast.present import Present
from outrider.forecast.recent_days import Arrival
from outrider.formats.campus.files import write_campus
from outrider.formats.workload import Workload
from outrider.journal import Entry, Journal
from outrider.model import events as ev
from outrider.model.errors import OutriderError
from outrider.model.events import Event, NamedEvent
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.demo.simulated_journal import write_journal
from outrider.service.journal.restart import replay_inputs
from outrider.service.twin.candidates_cycle import present_of, start_intervals
from outrider.service.twin.starts_file import StartInterval
from outrider.simulation.generators.campus import generate_campus
from outrider.testing.fixtures import Asked, make_workload

EPOCH_S = 1_600_000_000.0
SEEN_EVERY_S, HOUR_S = 600.0, 3_600.0
ASKED_EVERY_H = 6
LEARNS_H = 48
MAX_JOBS = 16
WAYS = ("replicates", "moved", "incumbent")


class Site(NamedTuple):
    """A site with its recorded journal.

    Attributes:
        path: its journal.
        policy: the policy that acted there.
        other: a candidate whose truth `workload` determines, or None.
        workload: the truth.
    """

    path: Path
    policy: str
    other: str | None = None
    workload: Workload | None = None


class Forecasted(NamedTuple):
    """Forecasts for one job, and its actual start.

    Attributes:
        policy: policy of the forecast.
        job: name of the job.
        start_s: its next start under that policy, Unix seconds.
        by_way: the forecasts, by `WAYS`.
    """

    policy: str
    job: str
    start_s: float
    by_way: dict[str, StartInterval]


def grid(seed: int, folder: Path, days: float) -> Site:
    """Simulate batches of six users on 16 CPUs, close to their capacity."""
    rng = np.random.default_rng(seed)
    asked: list[Asked] = []
    at_s = 0.0
    while at_s < days * 86_400.0:
        user, width = int(rng.integers(6)), int(rng.choice([1, 1, 2, 4]))
        requested_s = (600.0, 1_800.0, 5_000.0)[user // 2]
        for _ in range(int(rng.integers(1, 12))):
            run_s = float(np.round(requested_s * rng.choice([0.2, 0.5, 0.9])))
            asked.append(Asked(at_s, run_s, width, requested_s))
        load_s = sum(job.run_s * job.cpus for job in asked) / (16 * 0.97)
        at_s = max(at_s + float(rng.exponential(600.0)), load_s - 40_000.0)
    users = [f"user{round(job.estimate_s or 0.0)}" for job in asked]
    workload = replace(make_workload((16,), asked), user=users)
    run = GridRun(workload, [make_policy("fifo", {}, 0, "bench")], lambda _: None)
    with Journal(folder / "journal.sqlite") as journal:
        inputs = [("grid", event) for event in _seen(_named(run.stream(), workload))]
        journal.append(Entry(inputs=inputs))
    return Site(folder / "journal.sqlite", "fifo", "sjf", workload)


def _named(events: Iterable[Event], workload: Workload) -> Iterator[NamedEvent]:
    for time_s, kind, subject, extra in events:
        names = workload.job_names if kind in ev.JOB_KINDS else workload.machine_names
        where = (workload.machine_names[extra[0]], extra[1]) if kind == ev.STARTED else extra
        yield EPOCH_S + time_s, kind, names[subject], where


def _seen(events: Iterable[NamedEvent]) -> Iterator[NamedEvent]:
    """Yield the events as a daemon sees them that polls every ten minutes."""
    seen_s = None
    for event in events:
        if event[1] == ev.TICK:
            continue
        seen_s = event[0] if seen_s is None else seen_s
        while event[0] > seen_s:
            yield seen_s, ev.TICK, "site", None
            seen_s += SEEN_EVERY_S
        yield event


def campus(seed: int, folder: Path, days: float) -> Site:
    """Simulate a small campus in term, with more jobs than its capacity by day."""
    weeks = max(1, round(days / 7))
    start = dt.date(2010, 2, 1)
    made = generate_campus(
        seed,
        weeks=weeks,
        machines=25,
        clusters=3,
        start=start,
        jobs=2_000 * weeks,
        bad_jobs=60 * weeks,
    )
    write_campus(made, folder / "campus")
    write_journal(folder / "campus", folder / "raw.sqlite", seed=seed)
    with Journal(folder / "raw.sqlite", read_only=True) as journal:
        events = [event for _, _, event in journal.inputs_after(0)]
    with Journal(folder / "journal.sqlite") as journal:
        journal.append(Entry(inputs=[("campus", event) for event in _seen(events)]))
    return Site(folder / "journal.sqlite", "random_match")


def starts_of(path: Path) -> dict[str, list[float]]:
    """Return the start times of each job's runs, Unix seconds, by name."""
    found: dict[str, list[float]] = {}
    with Journal(path, read_only=True) as journal:
        for _, _, (time_s, kind, job, _) in journal.inputs_after(0):
            if kind == ev.STARTED:
                found.setdefault(job, []).append(time_s)
    return found


def forecasts_of(recorded: Site, seed: int, budget_s: float) -> Iterator[Forecasted]:
    """Follow a journal, forecast every few hours, and yield forecasts with actual starts."""
    path, policies = recorded.path, [recorded.policy]
    if recorded.other is not None:
        policies.append(recorded.other)
    tables: dict[str, Any] = {name: {} for name in policies}
    given = {"adapters": {"logtail": {"paths": ["/nowhere"]}}, "policies": tables}
    loaded = check_config({**given, "state_dir": str(path.parent)}, "bench")
    core, site, starts_s = Core(loaded, []), FollowedSite(path), starts_of(path)
    outlook = Outlook(site, "first_fit", replicates=60)
    begin_s, hour, fed = None, -1.0, 0
    for now_s in site.catch_up():
        begin_s = now_s if begin_s is None else begin_s
        # the daemon's state is known at the end of a step, not at full hours within it
        if now_s % HOUR_S == 0.0 or now_s // HOUR_S == hour:
            continue
        hour = now_s // HOUR_S
        expected = outlook.look()
        if (now_s - begin_s) / HOUR_S < LEARNS_H or hour % ASKED_EVERY_H or not expected:
            continue
        with Journal(path, read_only=True) as journal:
            replay_inputs(core, _up_to(journal.inputs_after(fed), site.seq))
        fed = site.seq
        incumbent_starts = {
            name: None if one is None else StartInterval(*one) for name, one in expected.items()
        }
        present = present_of(loaded, core)
        ahead = CandidateStarts(
            present, site, lambda name, n: make_policy(name, {}, n, "bench"), seed,
            time.process_time,
        )  # fmt: skip
        next_s = {
            job: min(after)
            for job, times_s in starts_s.items()
            if (after := [at_s for at_s in times_s if at_s > now_s])
        }
        yield from _held(
            ahead, recorded.policy, budget_s, now_s, outlook.moved, incumbent_starts, next_s
        )
        if recorded.other is not None and recorded.workload is not None:
            future = true_future(recorded.workload, ahead, present, now_s)
            would = ahead.run(recorded.other, future)
            if would is not None:
                started_s = dict(zip(ahead.jobs, would.tolist(), strict=True))
                yield from _held(
                    ahead,
                    recorded.other,
                    budget_s,
                    now_s,
                    outlook.moved,
                    incumbent_starts,
                    started_s,
                )


def true_future(
    workload: Workload, ahead: CandidateStarts, present: Present, now_s: float
) -> Future:
    """Return the true future: run times and arrivals."""
    row = {name: number for number, name in enumerate(workload.job_names)}
    run_s = [float(workload.run_s[row[present.name(job)]]) for job in ahead.here]
    submit_s = workload.submit_s + EPOCH_S
    coming = (
        (at_s, Arrival(at_s, workload.spec(number), float(workload.run_s[number]), -1))
        for number, at_s in enumerate(submit_s.tolist())
        if at_s > now_s
    )
    return Future(run_s, coming, {}, frozenset(), 0)


def _up_to(rows: Iterable[Any], seq: int) -> Iterator[Any]:
    for row in rows:
        if row[0] > seq:
            return
        yield row


def _held(
    ahead: CandidateStarts,
    policy: str,
    budget_s: float,
    now_s: float,
    moved: Mapping[str, Any],
    incumbent_starts: Mapping[str, StartInterval | None],
    starts_s: Mapping[str, float],
) -> Iterator[Forecasted]:
    try:
        drawn_s = ahead.starts_s(policy, budget_s)
    except OutriderError:  # too few replicates: the daemon would not answer either
        return
    still = {name: np.zeros(3) for name in moved}
    raw = start_intervals(ahead.jobs, drawn_s, now_s, still, incumbent_starts)
    shifted = start_intervals(ahead.jobs, drawn_s, now_s, moved, incumbent_starts)
    names = [name for name in ahead.jobs if shifted.get(name) is not None and name in starts_s]
    for name in names[:: -(-len(names) // MAX_JOBS) or 1]:
        ways = dict(zip(WAYS, (raw[name], shifted[name], incumbent_starts[name]), strict=True))
        known = {way: start for way, start in ways.items() if start is not None}
        if known["replicates"].high_s > now_s:  # else it starts in the next pass
            yield Forecasted(policy, name, starts_s[name], known)


def figures(forecasts: list[Forecasted]) -> dict[str, Any]:
    """Return coverage and mean width by way."""
    out: dict[str, Any] = {"questions": len(forecasts)}
    for way in WAYS:
        pairs = [(one.start_s, one.by_way[way]) for one in forecasts]
        held = [start.low_s <= at_s <= start.high_s for at_s, start in pairs]
        below = [at_s < start.low_s for at_s, start in pairs]
        width_s = [start.high_s - start.low_s for _, start in pairs]
        out[way] = {
            "holds": round(float(np.mean(held)), 3) if held else None,
            "earlier": round(float(np.mean(below)), 3) if held else None,
            "width_h": round(float(np.mean(width_s)) / HOUR_S, 2) if held else None,
        }
    return out


SITES: Mapping[str, Callable[[int, Path, float], Site]] = {"grid": grid, "campus": campus}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--days", type=float, default=14.0)
    parser.add_argument("--sites", default="grid,campus")
    parser.add_argument(
        "--budget", type=float, default=1.5,
        help="CPU seconds for the replicates of one policy at one time",
    )  # fmt: skip
    given = parsed(parser, seeds=1, days=2.3, sites="grid", budget=0.1)
    results: dict[str, Any] = {}

    def note(of: str, forecasts: list[Forecasted]) -> None:
        for policy in dict.fromkeys(one.policy for one in forecasts):
            of_policy = [one for one in forecasts if one.policy == policy]
            results[f"{of} {policy}"] = figures(of_policy)
            if not given.json:
                print(f"{of} {policy}: {figures(of_policy)}", flush=True)

    for kind in given.sites.split(","):
        pooled: list[Forecasted] = []
        for seed in range(given.first_seed, given.first_seed + given.seeds):
            with tempfile.TemporaryDirectory() as folder:
                forecasts = list(
                    forecasts_of(SITES[kind](seed, Path(folder), given.days), seed, given.budget)
                )
            pooled += forecasts
            note(f"{kind} {seed}", forecasts)
        note(kind, pooled)
    if given.json:
        print(json.dumps({"seeds": given.seeds, "results": results}))


if __name__ == "__main__":
    main()
