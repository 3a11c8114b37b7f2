"""Replays of campuses with large machines and jobs that ask for CPUs, memory, GPUs, clusters."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import read_campus
from outrider.model import events as ev
from outrider.model.decisions import IMPOSSIBLE, RESUME, SHRINK, START, Decision
from outrider.model.events import Event
from outrider.model.machines import MachineSpec
from outrider.model.modes import DISCIPLINES, FIRST_FIT
from outrider.plugins.finding import POLICIES, find, make_policy
from outrider.replay.run import CampusRun
from outrider.simulation.campus_site import SharedSite, simulated_site
from tests.cli.running import outrider
from tests.fixtures import made_campuses as made
from tests.replay import recordings

SITE = """\
start = 2010-01-04T00:00:00
reboot = "03:00"
idle_before_job_open_s = 300
[clusters.lab]
[clusters.hall]
[clusters.den]
"""
MACHINES = """\
machine,cluster,active_w,idle_w,sleep_w,cpus,memory_mib,gpus
l0,lab,100,50,2,4,8000,0
l1,lab,100,50,2,4,8000,0
h0,hall,300,100,5,8,32000,2
h1,hall,200,60,3,2,4000,1
d0,den,60,30,2,1,,
"""
JOB_HEADER = "job,submit_s,run_s,kill_s,user,vo,cpus,memory_mib,gpus,only,estimate_s\n"
SEED = 1
ENDS = (ev.COMPLETED, ev.EVICTED, ev.REMOVED)
BEGINS = {ev.STARTED: (START, SHRINK), ev.RESIZED: (SHRINK,), ev.RESUMED: (RESUME,)}


def mixed_campus(folder: Path, seed: int = 3) -> Campus:
    """Write two days of owners, and of wide, memory-bound, GPU-bound and restricted jobs."""
    rng = random.Random(seed)
    owners = ["machine,login_s,logout_s\n"]
    for machine in ("l0", "l1", "h0", "h1", "d0"):
        for _ in range(6):
            login_s = rng.randrange(170_000)
            owners.append(f"{machine},{login_s},{login_s + rng.randrange(60, 9_000)}\n")
    jobs = [JOB_HEADER]
    for n in range(150):
        run_s = rng.choice([None, 60, 600, 3_600, 9_000, 30_000])
        submit_s = rng.randrange(150_000)
        kill_s = submit_s + 40_000 if run_s is None or rng.random() < 0.1 else ""
        cpus, only = rng.choice(
            [("", ""), (1, "lab"), (2, "lab+hall"), (4, "lab"), (8, "hall"), (1, "den"), (3, "")]
        )
        memory = rng.choice(["", "", 500, 3_000, 7_000, 20_000])
        gpus = rng.choice(["", "", "", 0, 1, 2])
        estimate = "" if run_s is None or rng.random() < 0.3 else 2 * run_s
        jobs.append(
            f"j{n},{submit_s},{'' if run_s is None else run_s},{kill_s},u,v,"
            f"{cpus},{memory},{gpus},{only},{estimate}\n"
        )
    return read_campus(
        made.write_sample(
            folder, site=SITE, machines=MACHINES, owners="".join(owners), jobs="".join(jobs)
        )
    )


class Placed:
    """Run with a check of each start: the machine must have the free resources for it."""

    def __init__(self, campus: Campus, policy: str, discipline: Any = FIRST_FIT) -> None:
        self.campus = campus
        self.decisions: list[Decision] = []
        self.happened: list[Event] = []
        run = CampusRun(
            campus, [make_policy(policy, {}, SEED, "test")], self.decisions.append,
            discipline=discipline,
        )  # fmt: skip
        self.happened.extend(run.stream())
        self.specs = {s: x for _, kind, s, x in self.happened if kind == ev.SUBMITTED}
        self.machines: dict[int, MachineSpec] = {
            s: x for _, kind, s, x in self.happened if kind == ev.JOINED
        }
        self.starts = [d for d in self.decisions if d.action == START]

    def check(self) -> int:
        """Check all events against the ledger; return the most jobs on one machine at a time."""
        begun = iter(d for d in self.decisions if d.action in (START, SHRINK, RESUME))
        place: dict[int, tuple[int, int]] = {}
        most = 0
        for time_s, kind, job, extra in self.happened:
            if kind in BEGINS:
                decided = next(begun)
                assert (decided.time_s, decided.job) == (time_s, job)
                assert decided.action in BEGINS[kind]
                assert extra in (decided.cpus, (decided.machine, decided.cpus))
                place[job] = decided.machine, decided.cpus
                self._check_cluster(job, decided.machine)
                most = max(most, self._check_machine(decided.machine, place))
            elif kind == ev.SUSPENDED or kind in ENDS:
                place.pop(job, None)
        assert next(begun, None) is None
        return most

    def _check_machine(self, machine: int, place: dict[int, tuple[int, int]]) -> int:
        has = self.machines[machine]
        here = {job: cpus for job, (where, cpus) in place.items() if where == machine}
        assert sum(here.values()) <= has.cpus
        for name in ("memory_mib", "gpus"):
            asked = [getattr(self.specs[job].resources, name, None) or 0.0 for job in here]
            declared = getattr(has.resources, name, None)
            assert declared is None or sum(asked) <= declared
        return len(here)

    def _check_cluster(self, job: int, machine: int) -> None:
        only = None if self.campus.only is None else self.campus.only[job]
        assert not only or self.machines[machine].cluster in only.split("+")


@pytest.mark.parametrize("policy", sorted(find(POLICIES)))
def test_no_policy_places_a_job_where_it_does_not_fit(tmp_path: Path, policy: str) -> None:
    placed = Placed(mixed_campus(tmp_path), policy)
    most = placed.check()
    begun = [event[3][1] for event in placed.happened if event[1] == ev.STARTED]
    assert most > 1
    assert sum(cpus > 1 for cpus in begun) > 5
    assert len(begun) > 30


@pytest.mark.parametrize("discipline", DISCIPLINES)
@pytest.mark.parametrize("policy", ["fifo", "sjf", "lowest_watts", "bandit"])
def test_no_discipline_places_a_job_where_it_does_not_fit(
    tmp_path: Path, policy: str, discipline: str
) -> None:
    assert Placed(mixed_campus(tmp_path, 5), policy, discipline).check() > 1


def small(folder: Path, owners: str, jobs: str, site: str = "") -> Campus:
    """Return a campus of the machines above."""
    return read_campus(
        made.write_sample(
            folder,
            site=f'reboot = "never"\nidle_before_job_open_s = 0\n{site}',
            machines=MACHINES,
            owners=f"machine,login_s,logout_s\n{owners}",
            jobs=JOB_HEADER + jobs,
        )
    )


def test_an_owner_who_returns_evicts_all_jobs_of_the_machine(tmp_path: Path) -> None:
    jobs = "".join(f"j{n},{n},5000,,u,v,{1 + n % 2},,1,hall,\n" for n in range(2))
    jobs += "k,5,5000,,u,v,4,,,hall,\n"
    campus = small(tmp_path, "h0,1000,2000\nh1,0,9000\n", jobs)
    placed = Placed(campus, "fifo")
    placed.check()
    evicted = [event for event in placed.happened if event[1] == ev.EVICTED]
    assert evicted == [(1000.0, ev.EVICTED, job, "owner") for job in range(3)]
    assert [start.time_s for start in placed.starts] == [0.0, 1.0, 5.0] + [2000.0] * 3
    report = CampusRun(campus, [make_policy("fifo", {}, 0, "test")], lambda _: None).run()
    assert report["badput_s"] == 1000 * 1 + 999 * 2 + 995 * 4
    assert report["goodput_s"] == 5000 * (1 + 2 + 4)
    assert report["evictions"]["owner"] == 3


def test_an_owner_who_returns_suspends_all_jobs_where_the_site_does_that(tmp_path: Path) -> None:
    jobs = "a,0,2000,,u,v,2,,,lab,\nb,0,2000,,u,v,2,,,lab,\n"
    owners = "l0,1000,1500\nl1,0,9000\n"
    placed = Placed(small(tmp_path, owners, jobs, "suspend_s = 600"), "fifo")
    kinds = [(t, ev.KIND_NAMES[kind], job) for t, kind, job, _ in placed.happened if t >= 1000.0
             and kind in (ev.SUSPENDED, ev.RESUMED, *ENDS)]  # fmt: skip
    assert kinds == [
        (1000.0, "suspended", 0), (1000.0, "suspended", 1),
        (1500.0, "resumed", 0), (1500.0, "resumed", 1),
        (2500.0, "completed", 0), (2500.0, "completed", 1),
    ]  # fmt: skip


def test_a_machine_on_which_another_job_runs_is_awake(tmp_path: Path) -> None:
    """The first job alone pays `wake_s`."""
    jobs = "a,5000,3000,,u,v,2,,,lab,\nb,6000,1000,,u,v,2,,,lab,\n"
    site = "wake_s = 100\nsleep_after_open_s = 600"
    placed = Placed(small(tmp_path, "l1,0,9000\n", jobs, site), "fifo")
    assert [event[:3] for event in placed.happened if event[1] == ev.COMPLETED] == [
        (7000.0, ev.COMPLETED, 1), (8100.0, ev.COMPLETED, 0),
    ]  # fmt: skip


def test_a_job_preempted_or_on_fewer_cpus_takes_longer_and_loses_nothing(tmp_path: Path) -> None:
    jobs = "a,0,1000,,u,v,4,,,lab,\nb,0,100,300,u,v,4,,,hall,\n"
    campus = small(tmp_path, "", jobs, "end_s = 9000")
    site = simulated_site(campus)
    assert isinstance(site, SharedSite)
    happened = []
    for event in site.events():
        happened.append(event)
        if event[1] == ev.SUBMITTED and event[2] == 1:
            site.wake_at(0.0)
        if event[1] == ev.TICK:
            if event[0] == 0.0:
                site.shrink(0, 0, 2)
                site.start(1, 2)
            elif event[0] == 400.0:  # 200 s of its work are done
                site.shrink(0, 0, 4)
            elif event[0] == 500.0:
                site.preempt(0)
            elif event[0] == 900.0:
                site.resume(0, 1)
            site.wake_at({0.0: 400.0, 400.0: 500.0, 500.0: 900.0}.get(event[0], 1e6))
    of_a = (ev.STARTED, ev.RESIZED, ev.SUSPENDED, ev.RESUMED, ev.COMPLETED)
    runs = [
        (t, ev.KIND_NAMES[kind], x) for t, kind, job, x in happened if job == 0 and kind in of_a
    ]
    assert runs == [
        (0.0, "started", (0, 2)), (400.0, "resized", 4), (500.0, "suspended", "cpus_given_back"),
        (900.0, "resumed", (0, 1)), (3700.0, "completed", None),
    ]  # fmt: skip
    assert (100.0, ev.COMPLETED, 1, None) in happened


def test_a_job_that_fits_on_no_machine_is_told_as_impossible(tmp_path: Path) -> None:
    jobs = (
        "a,0,10,,u,v,,64000,,lab,\nb,0,10,,u,v,,,3,hall,\nc,0,10,,u,v,,,,,\n"
        "d,0,10,50,u,v,,,9,lab,\n"
    )
    placed = Placed(small(tmp_path, "", jobs), "fifo")
    impossible = [d.job for d in placed.decisions if d.reason == IMPOSSIBLE]
    assert impossible == [0, 1, 3]
    report = CampusRun(placed.campus, [make_policy("fifo", {}, 0, "t")], lambda _: None).run()
    counts = report["jobs"]
    assert (counts["impossible"], counts["unfinished"], counts["completed"]) == (2, 2, 1)


def test_what_a_daemon_saw_of_such_a_campus_is_exported_and_replays_alike(tmp_path: Path) -> None:
    campus = mixed_campus(tmp_path)
    journal = tmp_path / "journal.sqlite"
    recordings.watch(tmp_path, journal, SEED)
    site = ("--site", tmp_path / "site.toml")
    outrider(
        "export", "campus", "--ledger", journal, *site, "--out", tmp_path / "out", "--json"
    ).json()
    exported = read_campus(tmp_path / "out")
    assert exported.capacities is not None
    assert exported.requests is not None
    made.assert_equal_amounts(exported.capacities, campus.capacities)
    assert exported.machine_names == campus.machine_names
    row = {name: at for at, name in enumerate(campus.job_names)}
    order = [row[name] for name in exported.job_names]
    assert sorted(order) == list(range(len(row)))
    assert campus.requests is not None
    assert campus.only is not None
    assert campus.estimate_s is not None
    for at, job in enumerate(order):
        assert exported.requests.cpus[at] == campus.requests.cpus[job]
        assert exported.requests.requested(at) == campus.requests.requested(job)
    assert exported.only == [campus.only[job] for job in order]
    np.testing.assert_array_equal(exported.estimate_s, campus.estimate_s[order])

    def starts(of: Campus) -> list[Any]:
        return [
            (round(start.time_s, 3), of.job_names[start.job], start.machine, start.cpus)
            for start in Placed(of, "random_match").starts
        ]

    assert starts(exported) == starts(campus)


def test_estimates_on_a_campus_are_what_users_requested_never_the_truth(tmp_path: Path) -> None:
    small(tmp_path, "", "a,0,100,,u,v,,,,,900\nb,1,100,,u,v,,,,,\n")
    (run,) = outrider("replay", tmp_path, "--policy", "fifo", "--json").json()["runs"]
    assert run["estimates"] == "requested"
    refused = outrider("replay", tmp_path, "--policy", "fifo", "--estimates", "exact")
    assert refused.code == 2
    assert "expected requested" in refused.err
    placed = Placed(read_campus(tmp_path), "fifo")
    assert [placed.specs[job].estimate_s for job in (0, 1)] == [900.0, None]


def test_easy_reservations_go_by_what_users_requested(tmp_path: Path) -> None:
    """Job `c` asks for 1000 s and would delay `b`, `d` asks for 300 s and would not."""
    jobs = (
        "a,0,500,,u,v,6,,,hall,500\nb,1,500,,u,v,8,,,hall,500\n"
        "c,2,10,,u,v,2,8000,,hall,1000\nd,3,10,,u,v,2,8000,,hall,300\n"
    )
    placed = Placed(small(tmp_path, "h1,0,9000\n", jobs), "fifo", "easy")
    first = [start.job for start in placed.starts]
    assert first == [0, 3, 1, 2]
