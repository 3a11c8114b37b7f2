"""Events of the watch on a fake server, look by look."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.api import PeerError, events
from outrider_adapters.pbs.dialects import OpenPBS, Torque, dialect_of, pbs_commands
from outrider_adapters.pbs.pbs_watch import PBSWatch
from outrider_adapters.pbs.settings import PBSSettings
from tests.adapters.pbs.fake_pbs import FakePBS

T = 1_795_231_020.0
BOTH = pytest.mark.parametrize("dialect", ["openpbs", "torque"])


class Watched:
    """Server, and all events of its watch."""

    def __init__(self, folder: Path, dialect: str = "openpbs", cursor: Any = None, **more: Any):
        self.pbs = FakePBS(folder, dialect, **more)
        self.now_s = T
        self.settings = PBSSettings(commands=str(folder), nodes_s=1.0, start_at="beginning")
        self.told: list[Any] = []
        self.again(cursor)

    def again(self, cursor: Any) -> None:
        """Create another watch, as after a restart."""
        commands = pbs_commands(self.settings)
        dialect = dialect_of(self.settings, commands)
        self.watch = PBSWatch(dialect, self.settings, lambda: self.now_s)
        self.watch.start(cursor)

    def look(self, after_s: float = 10.0) -> list[str]:
        """Look after some time, and return the kinds of the job events."""
        self.now_s += after_s
        self.batch = self.watch.look()
        self.told += self.batch.events
        assert [e[0] for e in self.batch.events] == sorted(e[0] for e in self.batch.events)
        return [events.KIND_NAMES[e[1]] for e in self.batch.events if e[1] in events.JOB_KINDS]

    def of(self, job: str) -> list[tuple[str, float]]:
        """Return kinds and times of a job's events, relative to T."""
        return [(events.KIND_NAMES[e[1]], e[0] - T) for e in self.told if e[2] == job]


@pytest.fixture
def watched(tmp_path: Path) -> Callable[..., Watched]:
    """Provide a fake PBS server, and the watch on it."""
    return lambda dialect="openpbs", **more: Watched(tmp_path / "pbs", dialect, **more)


def test_whose_commands_they_are_is_found_out(tmp_path: Path) -> None:
    for name, kind in (("openpbs", OpenPBS), ("torque", Torque)):
        FakePBS(tmp_path / name, name)
        settings = PBSSettings(commands=str(tmp_path / name))
        assert isinstance(dialect_of(settings, pbs_commands(settings)), kind)
    nowhere = PBSSettings(commands=str(tmp_path))
    with pytest.raises(PeerError, match="qstat cannot be run: No such file"):
        dialect_of(nowhere, pbs_commands(nowhere))


@BOTH
def test_a_job_from_its_submission_to_its_end_at_the_servers_own_times(
    watched: Callable[..., Watched], dialect: str
) -> None:
    site = watched(dialect)
    job = site.pbs.submit(T + 3)
    assert site.look() == ["submitted"]
    site.pbs.start(job, T + 12)
    assert site.look() == ["started"]
    site.pbs.end(job, T + 25)
    assert site.look() == ["completed"]
    assert site.look() == []
    assert site.of(job) == [("submitted", 3.0), ("started", 12.0), ("completed", 25.0)]
    [spec] = [e[3] for e in site.told if e[1] == events.SUBMITTED]
    assert (spec.user, spec.vo, spec.cpus, spec.estimate_s) == ("ann", "physics", 2, 3600.0)
    assert [e[3] for e in site.told if e[1] == events.STARTED] == [("n1", 2)]


@BOTH
def test_nodes_join_close_and_leave(watched: Callable[..., Watched], dialect: str) -> None:
    site = watched(dialect)
    site.look()
    joined = {e[2]: e[3] for e in site.told if e[1] == events.JOINED}
    assert {name: spec.cpus for name, spec in joined.items()} == {"n1": 4, "n2": 4, "n3": 8}
    assert {spec.resources.memory_mib for spec in joined.values()} == {16_000.0}
    site.pbs.state["nodes"]["n1"]["state"] = "offline,job-busy"
    del site.pbs.state["nodes"]["n3"]
    site.pbs.save()
    site.look()
    told = [(events.KIND_NAMES[e[1]], e[2]) for e in site.batch.events]
    assert sorted(told) == [("drained", "n1"), ("left", "n3")]
    site.pbs.state["nodes"]["n1"]["state"] = "free"
    site.pbs.save()
    site.look()
    assert [(events.KIND_NAMES[e[1]], e[2]) for e in site.batch.events] == [("usable", "n1")]


@BOTH
def test_a_job_queued_again_is_evicted_and_runs_anew(
    watched: Callable[..., Watched], dialect: str
) -> None:
    site = watched(dialect)
    job = site.pbs.submit(T)
    site.pbs.start(job, T + 2)
    assert site.look() == ["submitted", "started"]
    site.pbs.change(job, job_state="Q", exec_host=None)
    assert site.look() == ["evicted"]
    site.pbs.start(job, T + 21, "n2")
    site.look()
    site.pbs.start(job, T + 35, "n3")  # and again between two looks
    assert site.look() == ["evicted", "started"]
    kinds = [kind for kind, _ in site.of(job)]
    assert kinds == ["submitted", "started", "evicted", "started", "evicted", "started"]


@pytest.mark.parametrize(
    ("attributes", "why"),
    [
        ({"job_state": "H", "Hold_Types": "u"}, "user"),
        ({"job_state": "H", "Hold_Types": "so"}, "operator_and_system"),
        ({"job_state": "H", "Hold_Types": "s", "depend": "afterok:1.pbs.test"}, "dependency"),
        ({"job_state": "W", "Execution_Time": "Sun Nov 22 03:17:00 2026"}, "execution_time"),
    ],
)
def test_a_held_job_is_held_with_why_until_it_is_let_go(
    watched: Callable[..., Watched], attributes: dict[str, str], why: str
) -> None:
    site = watched()
    job = site.pbs.submit(T, **attributes)
    assert site.look() == ["submitted", "held"]
    assert [e[3] for e in site.told if e[1] == events.HELD] == [why]
    site.pbs.change(job, job_state="Q", Hold_Types="n", etime=int(T + 14))
    assert site.look() == ["released"]
    assert site.of(job)[-1] == ("released", 14.0)


@pytest.mark.parametrize(
    ("dialect", "status", "kind", "reason"),
    [
        ("openpbs", 0, "completed", None),
        ("openpbs", 7, "completed", None),
        ("openpbs", 271, "removed", "killed"),
        ("openpbs", -29, "removed", "killed"),
        ("torque", -11, "removed", "killed"),
        ("torque", -1, "removed", "failed_start"),
    ],
)
def test_how_a_job_left_is_read_of_its_exit_status(
    watched: Callable[..., Watched], dialect: str, status: int, kind: str, reason: str | None
) -> None:
    site = watched(dialect)
    job = site.pbs.submit(T)
    site.pbs.start(job, T + 2)
    site.look()
    site.pbs.end(job, T + 12, status)
    assert site.look() == [kind]
    assert site.told[-1][3] == reason


def test_a_job_deleted_while_it_waits_is_removed(watched: Callable[..., Watched]) -> None:
    site = watched()
    job = site.pbs.submit(T)
    site.look()
    site.pbs.end(job, T + 12, 271)
    assert site.look() == ["removed"]
    assert site.told[-1][3] == "removed"


@pytest.mark.parametrize("history", [True, False])
def test_jobs_that_left_and_of_which_nothing_is_known_count_as_removed(
    watched: Callable[..., Watched], history: bool
) -> None:
    site = watched(history=history)
    known, gone = site.pbs.submit(T), site.pbs.submit(T)
    site.pbs.start(known, T + 1)
    site.look()
    site.pbs.end(known, T + 12)
    site.pbs.leave(gone)
    assert sorted(site.look()) == (["completed", "removed"] if history else ["removed"] * 2)
    assert site.told[-1][3] == "unknown"
    n = 1 if history else 2
    assert site.batch.note == f"the end of {n} jobs is unknown: they count as removed"


def test_suspended_resumed_edited_and_moved(watched: Callable[..., Watched]) -> None:
    site = watched()
    job, other = site.pbs.submit(T), site.pbs.submit(T)
    site.look()
    site.pbs.change(job, Resource_List__walltime="02:00:00")
    assert site.look() == ["changed"]
    assert site.told[-1][3] == {"estimate_s": 7200.0}
    site.pbs.start(job, site.now_s)
    site.look()
    for state, kind in (("S", "suspended"), ("R", "resumed"), ("U", "suspended"), ("E", "resumed")):
        site.pbs.change(job, job_state=state)
        assert site.look() == [kind]
    site.pbs.change(other, job_state="M")
    assert site.look() == ["removed"]


def test_a_number_that_is_given_out_again_is_another_job(watched: Callable[..., Watched]) -> None:
    site = watched()
    job = site.pbs.submit(T)
    site.look()
    site.pbs.change(job, ctime=int(T + 15))
    assert site.look() == ["removed", "submitted"]


def test_arrays_are_their_jobs_and_a_job_that_cannot_be_read_stays_as_it_was(
    watched: Callable[..., Watched],
) -> None:
    site = watched()
    jobs = site.pbs.state["jobs"]
    jobs["9[].pbs.test"] = dict(jobs[site.pbs.submit(T)], job_state="B")
    jobs["9[1].pbs.test"] = dict(jobs["1.pbs.test"])
    site.pbs.save()
    assert site.look() == ["submitted", "submitted"]
    assert {e[2] for e in site.told if e[1] == events.SUBMITTED} == {"1.pbs.test", "9[1].pbs.test"}
    site.pbs.change("1.pbs.test", job_state="?")
    assert site.look() == []
    assert site.batch.rejected == {"job": 1}
    site.pbs.change("1.pbs.test", job_state="Q")
    assert site.look() == []


@BOTH
def test_a_restart_tells_what_happened_meanwhile_and_nothing_twice(
    watched: Callable[..., Watched], dialect: str
) -> None:
    site = watched(dialect)
    first, second = site.pbs.submit(T), site.pbs.submit(T)
    site.pbs.start(first, T + 1)
    site.look()
    site.pbs.end(first, T + 14)
    site.pbs.start(second, T + 15)
    site.again(site.batch.cursor)
    assert sorted(site.look()) == ["completed", "started"]
    assert not [e for e in site.batch.events if e[1] == events.JOINED]
    with pytest.raises(ValueError, match="no cursor of a watched PBS server"):
        site.again({"version": 99})


def test_a_server_that_is_gone_makes_looks_grow_old(watched: Callable[..., Watched]) -> None:
    site = watched()
    job = site.pbs.submit(T)
    site.look()
    with site.pbs.silenced():
        assert site.look() == []
        assert "cannot connect to server pbs.test" in site.batch.note
        site.look()
        assert site.batch.age_s >= 20.0, "since the last answer, 10 s before the first of these"
    site.pbs.start(job, T + 31)
    assert site.look() == ["started"]


def test_what_was_there_at_the_first_look_is_history(tmp_path: Path) -> None:
    site = Watched(tmp_path / "pbs")
    site.settings = PBSSettings(commands=str(tmp_path / "pbs"))
    site.again(None)
    site.pbs.submit(T)
    assert site.look() == ["submitted"]
    assert (site.batch.history, site.batch.seen_until_s) == (True, None)
    site.look()
    assert (site.batch.history, site.batch.seen_until_s) == (False, site.now_s - 1.0)


@pytest.mark.parametrize(
    ("attributes", "sentence", "never", "remedy"),
    [
        ({"comment": "Not Running: Insufficient amount of resource: ncpus"},
         "PBS reports: Not Running: Insufficient amount of resource: ncpus", False,
         "wait, or ask for less"),
        ({"comment": "Can Never Run: Insufficient amount of resource: mem (R: 1tb A: 8gb T: 8gb)"},
         "PBS reports: Can Never Run: Insufficient amount of resource: mem (R: 1tb A: 8gb T: 8gb)",
         True, "ask for less, or for something else: qalter -l ... 1.pbs.test"),
        ({}, "its scheduler has not reported a reason yet", False, "wait, or ask for less"),
        ({"job_state": "H", "Hold_Types": "u"}, "it is held by its user", False,
         "release it: qrls -h u 1.pbs.test"),
        ({"job_state": "H", "Hold_Types": "s", "depend": "afterok:7.pbs.test"},
         "it waits for other jobs: afterok:7.pbs.test", False, "wait for these jobs"),
        ({"job_state": "W", "Execution_Time": "Sun Nov 22 03:17:00 2026"},
         "it waits until Sun Nov 22 03:17:00 2026", False,
         "let it begin now: qalter -a $(date +%Y%m%d%H%M) 1.pbs.test"),
    ],
)  # fmt: skip
def test_why_a_job_waits_is_what_pbs_says(
    watched: Callable[..., Watched],
    attributes: dict[str, str], sentence: str, never: bool, remedy: str,
) -> None:  # fmt: skip
    site = watched()
    job = site.pbs.submit(T, **attributes)
    site.look()
    told = site.watch.why(job)
    assert told is not None
    assert (told.sentence, told.never, told.remedies[0]) == (sentence, never, remedy)
    assert site.watch.why("another") is None
    site.pbs.change(job, job_state="R", stime=int(T), exec_host="n1/0*2")
    assert site.watch.why(job) is None


@BOTH
def test_when_the_scheduler_expects_to_start_a_job_is_its_plan(
    watched: Callable[..., Watched], dialect: str
) -> None:
    site = watched(dialect)
    planned, _ = (site.pbs.submit(T + 3) for _ in range(2))
    when = "Sat Nov 21 04:17:00 2026"
    site.pbs.change(planned, **{"estimated.start_time": when})
    site.look()
    assert site.watch.planned_starts.asked_s == site.now_s
    assert site.watch.planned_starts.starts_s == {planned: T + 3_600.0}
    site.pbs.start(planned, T + 12)
    site.look()
    assert site.watch.planned_starts.starts_s == {}
