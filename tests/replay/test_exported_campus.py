"""`outrider export campus`: the record becomes a campus with the same replay."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import read_campus, write_campus
from outrider.model import events as ev
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources
from outrider.plugins.finding import make_policy
from outrider.replay.run import CampusRun
from outrider.simulation.exogenous_events import owner_intervals
from outrider.simulation.generators.campus import generate_campus
from tests.cli.running import outrider
from tests.replay import recordings

SEED = 4
NOON = 1_767_960_000.0  # Friday 9 January 2026, 12:00 UTC
LAB = MachineSpec(cluster="lab", active_w=57.0, idle_w=40.0, sleep_w=2.0)
LOG_HOST = "<10.0.0.7:9618?addrs=10.0.0.7-9618&alias=node7.example.org>"


def export(*words: object) -> Any:
    """Return the facts that the command prints; it has to succeed."""
    return outrider("export", "campus", *words, "--json").json()


def report(campus: Campus) -> dict[str, Any]:
    """Replay a campus under its incumbent."""
    policy = make_policy("random_match", {}, SEED, "test")
    return CampusRun(campus, [policy], lambda *_: None).run()


# -- a daemon's journal, there and back ---------------------------------------------------------


class RoundTrip:
    """Export a generated campus with the site's own rules, from a daemon's journal."""

    def __init__(self, folder: Path) -> None:
        made = generate_campus(8, weeks=2, machines=40, clusters=3)
        write_campus(made, folder / "made")
        recordings.watch(folder / "made", folder / "journal.sqlite", SEED)
        self.facts = export(
            "--ledger", folder / "journal.sqlite", "--site", folder / "made" / "site.toml",
            "--out", folder / "exported",
        )  # fmt: skip
        self.folder = folder
        self.made = made
        self.exported = read_campus(folder / "exported")


@pytest.fixture(scope="module")
def trip(tmp_path_factory: pytest.TempPathFactory) -> RoundTrip:
    """Return a campus, its journal, and the campus exported from that."""
    return RoundTrip(tmp_path_factory.mktemp("trip"))


def test_arrivals_come_back_exactly(trip: RoundTrip) -> None:
    made, exported = trip.made, trip.exported
    assert len(made.job_names) > 300
    assert exported.job_names == made.job_names
    np.testing.assert_array_equal(exported.submit_s, made.submit_s)
    assert [exported.user_names[u] for u in exported.user] == [
        made.user_names[u] for u in made.user
    ]
    assert [exported.vo_names[v] for v in exported.vo] == [made.vo_names[v] for v in made.vo]


def test_machines_clusters_and_owners_come_back_exactly(trip: RoundTrip) -> None:
    made, exported = trip.made, trip.exported
    assert exported.start == made.start
    assert exported.machine_names == made.machine_names
    assert [c.hours.text for c in exported.clusters] == [c.hours.text for c in made.clusters]
    for column in ("machine_cluster", "active_w", "idle_w", "sleep_w"):
        np.testing.assert_array_equal(getattr(exported, column), getattr(made, column))
    one, other = owner_intervals(made), owner_intervals(exported)
    assert len(one.machine) > 1_000
    for column in ("machine", "came_s", "went_s"):
        np.testing.assert_array_equal(getattr(other, column), getattr(one, column))
    assert exported.span_s == made.span_s


def test_run_times_are_the_truth_of_jobs_that_completed(trip: RoundTrip) -> None:
    made, exported = trip.made, trip.exported
    known = ~np.isnan(exported.run_s)
    assert known.sum() == report(made)["jobs"]["completed"]
    np.testing.assert_allclose(exported.run_s[known], made.run_s[known], rtol=0, atol=1e-5)
    killed = ~np.isnan(exported.kill_s)
    np.testing.assert_array_equal(exported.kill_s[killed], made.kill_s[killed])


def test_the_exported_campus_replays_as_the_first_one_did(trip: RoundTrip) -> None:
    """The replay is the same but for sums of microseconds: the same machines are drawn."""
    first, again = report(trip.made), report(trip.exported)
    assert first["starts"] > 400
    for name in ("jobs", "starts", "evictions", "decisions", "events"):
        assert again[name] == first[name], name
    assert again["goodput_s"] == pytest.approx(first["goodput_s"], rel=1e-9)
    assert again["badput_s"] == pytest.approx(first["badput_s"], rel=1e-9)
    assert again["energy_wh"] == pytest.approx(first["energy_wh"], rel=1e-9)
    assert again["wait_s"]["all"] == pytest.approx(first["wait_s"]["all"], rel=1e-6, abs=1e-6)


def test_what_was_exported_and_watched_again_is_exported_as_the_same_files(
    trip: RoundTrip, tmp_path: Path
) -> None:
    recordings.watch(trip.folder / "exported", tmp_path / "journal.sqlite", SEED)
    export(
        "--ledger", tmp_path / "journal.sqlite", "--site", trip.folder / "made" / "site.toml",
        "--out", tmp_path / "again",
    )  # fmt: skip
    again = read_campus(tmp_path / "again")
    assert again.job_names == trip.exported.job_names
    for column in ("submit_s", "kill_s", "login_s", "logout_s", "session_machine"):
        np.testing.assert_array_equal(getattr(again, column), getattr(trip.exported, column))
    np.testing.assert_allclose(again.run_s, trip.exported.run_s, rtol=0, atol=1e-5)


def test_what_the_campus_assumes_is_said(trip: RoundTrip) -> None:
    killed = int((~np.isnan(trip.exported.kill_s)).sum())
    assert killed > 10
    [note] = [note for note in trip.facts["notes"] if "removed" in note]
    assert note.startswith(f"{killed} jobs were removed before they completed")


def test_without_declared_habits_the_commonest_delay_and_reboot_are_taken_and_said(
    trip: RoundTrip, tmp_path: Path
) -> None:
    out = tmp_path / "guessed"
    facts = export("--ledger", trip.folder / "journal.sqlite", "--out", out, "--gz")
    guessed = read_campus(out)
    assert guessed.reboot_s == 3 * 3600
    assert guessed.idle_before_job_open_s == guessed.idle_before_job_closed_s
    assert guessed.idle_before_job_open_s in {0.0, 900.0}
    assert {c.hours.text for c in guessed.clusters} == {"always"}
    assert not any(c.sleeps for c in guessed.clusters)
    notes = " ".join(facts["notes"])
    assert "--site names a file" in notes
    assert "reboot 03:00" in notes


# -- what a record may hold ---------------------------------------------------------------------


def recorded(tmp_path: Path, *events: Any, **options: Any) -> tuple[Campus, str]:
    """Return the campus of a few events, and its notes as one text."""
    seen_s = options.pop("seen_s", None)
    journal = recordings.write_journal(tmp_path / "journal.sqlite", events, seen_s)
    words = [word for pair in options.items() for word in (f"--{pair[0]}", pair[1])]
    facts = export("--ledger", journal, "--out", tmp_path / "out", *words)
    return read_campus(tmp_path / "out"), "\n".join(facts["notes"])


def job(name: str, *turns: tuple[float, int, Any], **spec: Any) -> list[Any]:
    """Return a job submitted at noon, with its events in seconds after noon."""
    submitted = (NOON, ev.SUBMITTED, name, JobSpec(**spec))
    return [submitted, *((NOON + at_s, kind, name, extra) for at_s, kind, extra in turns)]


def owner(machine: str, came_s: float, went_s: float | None = None) -> list[Any]:
    """Return an owner's session, in seconds after noon; without an end if none was seen."""
    came = [(NOON + came_s, ev.OWNER_CAME, machine, None)]
    return came if went_s is None else [*came, (NOON + went_s, ev.OWNER_WENT, machine, None)]


JOINS = [(NOON, ev.JOINED, name, LAB) for name in ("pc1", "pc2")]


def test_second_0_is_the_midnight_before_the_first_event(tmp_path: Path) -> None:
    campus, _ = recorded(tmp_path, *JOINS, *owner("pc1", 60.25, 120.5))
    assert campus.start.isoformat() == "2026-01-09T00:00:00"
    assert (campus.login_s.tolist(), campus.logout_s.tolist()) == ([43_260.25], [43_320.5])


def test_the_record_ends_where_everything_was_seen(tmp_path: Path) -> None:
    campus, _ = recorded(tmp_path, *JOINS, *owner("pc1", 60.0), seen_s=NOON + 3_600)
    assert campus.span_s == 13 * 3_600
    assert campus.logout_s.tolist() == [13 * 3_600]  # he sat there when it ended


def test_a_run_time_is_that_of_the_run_that_completed_without_its_suspensions(
    tmp_path: Path,
) -> None:
    campus, _ = recorded(
        tmp_path,
        *JOINS,
        *job(
            "a",
            (10.0, ev.STARTED, ("pc1", 1)),
            (500.0, ev.EVICTED, "owner"),
            (600.0, ev.STARTED, ("pc2", 1)),
            (700.0, ev.SUSPENDED, None),
            (750.5, ev.RESUMED, None),
            (900.0, ev.COMPLETED, None),
        ),
    )
    assert campus.run_s.tolist() == [249.5]
    assert np.isnan(campus.kill_s[0])


def test_jobs_that_did_not_complete_never_end_and_are_killed_when_they_were(tmp_path: Path) -> None:
    campus, notes = recorded(
        tmp_path,
        *JOINS,
        *job("killed", (10.0, ev.STARTED, ("pc1", 1)), (70.0, ev.REMOVED, "removed")),
        *job("going", (10.0, ev.STARTED, ("pc2", 1))),
    )
    assert np.isnan(campus.run_s).all()
    assert dict(zip(campus.job_names, campus.kill_s, strict=True))["killed"] == 43_270.0
    assert "1 jobs were removed before they completed" in notes
    assert "1 jobs had not ended when the record did" in notes


def test_events_told_twice_and_out_of_order_make_no_difference(tmp_path: Path) -> None:
    events = [*JOINS, *owner("pc1", 60.0, 120.0), *job("a", (10.0, ev.STARTED, ("pc2", 1)),
            (70.0, ev.COMPLETED, None))]  # fmt: skip
    (tmp_path / "one").mkdir()
    (tmp_path / "other").mkdir()
    one, _ = recorded(tmp_path / "one", *events)
    other, _ = recorded(tmp_path / "other", *reversed([*events[2:], *events[2:]]), *JOINS)
    for name in ("login_s", "logout_s", "submit_s", "run_s", "kill_s"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_a_machine_with_several_cpus_stays_one_machine(tmp_path: Path) -> None:
    server = MachineSpec(
        cluster="hall", cpus=8, active_w=100.0, idle_w=50.0, resources=Resources(16_000.0, 2.0)
    )
    campus, _ = recorded(tmp_path, (NOON, ev.JOINED, "big", server), *owner("big", 10.0, 20.0))
    assert campus.machine_names == ["big"]
    assert campus.active_w.tolist() == [100.0]
    assert np.isnan(campus.sleep_w).all()
    assert campus.capacities is not None
    assert campus.capacities.cpus.tolist() == [8]
    assert campus.capacities.declared(0) == Resources(16_000.0, 2.0)
    assert campus.session_machine.tolist() == [0]


def test_what_jobs_asked_for_and_where_they_may_run_is_exported(tmp_path: Path) -> None:
    joins = [
        (NOON, ev.JOINED, name, MachineSpec(cluster=cluster, cpus=4))
        for name, cluster in (("l1", "lab"), ("l2", "lab"), ("h1", "hall"))
    ]
    classes = [(NOON, ev.ELIGIBLE, "any", ("l1", "l2", "h1")),
               (NOON, ev.ELIGIBLE, "Requirements 1", ("l1", "l2")),
               (NOON, ev.ELIGIBLE, "half", ("l1", "h1"))]  # fmt: skip
    submits = [
        (NOON + 1, ev.SUBMITTED, "a", JobSpec(cpus=2, resources=Resources(500.0, 1.0))),
        (NOON + 2, ev.SUBMITTED, "b", JobSpec(eligible="Requirements 1", estimate_s=600.0)),
        (NOON + 3, ev.SUBMITTED, "c", JobSpec(eligible="any")),
        (NOON + 4, ev.SUBMITTED, "d", JobSpec(eligible="half")),
        (NOON + 5, ev.SUBMITTED, "e", JobSpec(cpus=5)),
        (NOON + 6, ev.SUBMITTED, "f", JobSpec()),
        (NOON + 7, ev.STARTED, "f", ("l1", 3)),
    ]
    campus, notes = recorded(tmp_path, *joins, *classes, *submits)
    assert campus.job_names == ["a", "b", "c", "d", "f"]
    assert campus.requests is not None
    assert campus.requests.cpus.tolist() == [2, 1, 1, 1, 3]
    assert campus.requests.requested(0) == Resources(500.0, 1.0)
    assert campus.only == ["", "lab", "", "", ""]
    np.testing.assert_array_equal(campus.estimate_s, [np.nan, 600.0, np.nan, np.nan, np.nan])
    assert "1 jobs may use machines that are unknown or not whole clusters" in notes
    assert "1 jobs ask for more CPUs than any machine has" in notes


def test_a_name_that_was_given_out_again_is_told_apart(tmp_path: Path) -> None:
    first = job("1.0", (10.0, ev.STARTED, ("pc1", 1)), (70.0, ev.COMPLETED, None))
    second = [
        (NOON + 86_400, ev.SUBMITTED, "1.0", JobSpec()),
        (NOON + 86_410, ev.STARTED, "1.0", ("pc1", 1)),
        (NOON + 86_430, ev.COMPLETED, "1.0", None),
    ]
    campus, _ = recorded(tmp_path, *JOINS, *first, *second)
    assert campus.job_names == ["1.0", f"1.0#{int(NOON) + 86_400}"]
    assert campus.run_s.tolist() == [60.0, 20.0]


def test_unknown_watts_are_nothing_in_the_table_and_null_in_the_report(tmp_path: Path) -> None:
    done = job("a", (10.0, ev.STARTED, ("pc9", 1)), (70.0, ev.COMPLETED, None))
    campus, notes = recorded(tmp_path, *done)
    table = (tmp_path / "out" / "machines.csv").read_text().splitlines()
    assert table[1] == "pc9,default,,,"
    energy_wh = report(campus)["energy_wh"]
    assert (energy_wh["goodput"], energy_wh["idle"]) == (None, None)
    assert energy_wh["badput"] == 0.0  # there was none
    assert "1 machines are known only from their jobs" in notes


# -- clocks -------------------------------------------------------------------------------------

SPRING = 1_774_742_400.0  # Sunday 29 March 2026, 00:00 UTC: at 01:00 UTC Berlin's clock jumps
AUTUMN = 1_792_886_400.0  # Sunday 25 October 2026, 00:00 UTC: at 01:00 UTC it goes back


@pytest.mark.parametrize(
    ("begins", "start", "change"),
    [
        (SPRING, "2026-03-29T00:00:00", "clocks changed by +1 h on 2026-03-29"),
        (AUTUMN, "2026-10-25T00:00:00", "clocks changed by -1 h on 2026-10-25"),
    ],
)
def test_a_change_of_clocks_shortens_and_lengthens_nothing_and_is_said(
    tmp_path: Path, begins: float, start: str, change: str
) -> None:
    night = [
        (begins, ev.JOINED, "pc1", LAB),
        (begins + 1_800, ev.OWNER_CAME, "pc1", None),  # half an hour before the change
        (begins + 9_000, ev.OWNER_WENT, "pc1", None),  # two hours later, whatever clocks say
        (begins + 9_060, ev.SUBMITTED, "a", JobSpec()),
    ]
    campus, notes = recorded(tmp_path, *night, timezone="Europe/Berlin")
    offset_s = 3_600 if begins == SPRING else 7_200
    assert campus.start.isoformat() == start
    assert campus.login_s.tolist() == [offset_s + 1_800]
    assert campus.logout_s.tolist() == [offset_s + 9_000]
    assert change in notes


def test_a_record_without_a_change_of_clocks_says_nothing_of_clocks(tmp_path: Path) -> None:
    _, notes = recorded(tmp_path, *JOINS, *owner("pc1", 60.0, 120.0), timezone="Europe/Berlin")
    assert "clocks" not in notes


# -- logs of a batch system ---------------------------------------------------------------------


def log_of(path: Path, *records: tuple[int, int, str, str]) -> Path:
    """Write an HTCondor event log of (event number, job, clock, text)."""
    path.write_text(
        "".join(
            f"{number:03d} ({job:03d}.000.000) 2026-01-09 {clock} {text}\n...\n"
            for number, job, clock, text in records
        )
    )
    return path


SUBMITTED = "Job submitted from host: <10.0.0.1:9618>"
STARTED = f"Job executing on host: {LOG_HOST}\n\tSlotName: slot1@node7"
EVICTED = "Job was evicted.\n\t(0) CPU times"
COMPLETED = "Job terminated.\n\t(1) Normal termination (return value 0)"
REMOVED = "Job was aborted.\n\tby the user"


def test_an_event_log_gives_jobs_with_observed_run_times_and_no_owners(tmp_path: Path) -> None:
    log = log_of(
        tmp_path / "EventLog",
        (0, 1, "10:00:00", SUBMITTED),
        (1, 1, "10:00:20", STARTED),
        (4, 1, "10:01:20", EVICTED),
        (1, 1, "10:02:00", STARTED),
        (5, 1, "10:04:00", COMPLETED),
        (0, 2, "10:05:00", SUBMITTED),
        (9, 2, "11:00:00", REMOVED),
    )
    facts = export("--log", log, "--out", tmp_path / "out")
    campus = read_campus(tmp_path / "out")
    assert len(campus.machine_names) == 1
    assert campus.run_s[0] == 120.0
    assert np.isnan(campus.run_s[1])
    assert campus.kill_s[1] == 11 * 3_600
    assert len(campus.login_s) == 0
    assert "no owner sessions" in " ".join(facts["notes"])


def test_real_event_logs_become_campuses_that_replay(shared: Path, tmp_path: Path) -> None:
    log = shared / "data" / "condor" / "utexas_texplore_try_long.log.gz"
    counted = outrider("ingest", log, "--json").json()
    facts = export("--log", log, "--out", tmp_path / "out")
    campus = read_campus(tmp_path / "out")
    assert facts["jobs"] == counted["jobs"]["submitted"]
    assert int((~np.isnan(campus.run_s)).sum()) == counted["jobs"]["completed"]
    replayed = report(campus)
    assert replayed["jobs"]["submitted"] == facts["jobs"]
    assert replayed["jobs"]["completed"] > 0
    assert replayed["evictions"]["owner"] == 0


# -- refusals -----------------------------------------------------------------------------------


def replay_ledger(folder: Path) -> list[object]:
    campus = generate_campus(1, weeks=0.2, machines=4, clusters=1)
    write_campus(campus, folder / "c")
    ledger = folder / "decisions.sqlite"
    outrider("replay", folder / "c", "--policy", "fifo", "--ledger", ledger)
    return ["--ledger", ledger]


def empty_log(folder: Path) -> list[object]:
    (folder / "EventLog").write_text("")
    return ["--log", folder / "EventLog"]


def some_log(folder: Path) -> list[object]:
    return ["--log", log_of(folder / "EventLog", (0, 1, "10:00:00", SUBMITTED))]


def bad_site(folder: Path) -> list[object]:
    (folder / "habits.toml").write_text('reboot = "3 am"')
    return [*some_log(folder), "--site", folder / "habits.toml"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (lambda folder: [], "either --ledger FILE or --log FILE"),
        (lambda folder: [*replay_ledger(folder), *some_log(folder)], "either --ledger FILE or"),
        (replay_ledger, "holds no events of a site; expected the journal of a daemon"),
        (empty_log, "no job found; expected a log of a batch system"),
        (lambda folder: [*some_log(folder), "--timezone", "Mars/Olympus"], "Mars/Olympus"),
        (
            bad_site,
            'habits.toml: line 1: "reboot" = "3 am" is no time of day; expected "03:00"',
        ),
        (lambda folder: ["--ledger", folder / "none.sqlite"], "none.sqlite"),
    ],
)
def test_what_cannot_be_exported_is_refused_and_nothing_is_written(
    tmp_path: Path, words: Callable[[Path], list[object]], message: str
) -> None:
    done = outrider("export", "campus", *words(tmp_path), "--out", tmp_path / "out")
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not (tmp_path / "out").exists()
