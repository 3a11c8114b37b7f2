"""The physics of a campus by brute force: slow loops over the trace, unlike the product's."""

from typing import NamedTuple

from deciding.campuses import DAY_S, HOUR_S, WEEKDAYS
from outrider.model.clusters import ClusterSpec
from outrider.model.events import (
    COMPLETED,
    EVICTED,
    REMOVED,
    RESUMED,
    STARTED,
    SUSPENDED,
    Event,
)
from outrider.virtual.campus import Campus


class Run(NamedTuple):
    """One run of a job; `ending` is completed, removed, an eviction's reason, or open."""

    job: int
    machine: int
    start_s: float
    end_s: float
    ending: str


class Truth:
    """Answers by scanning every session and reboot of the trace."""

    def __init__(self, campus: Campus) -> None:
        self.campus = campus
        machines = range(len(campus.machine_names))
        rows = list(zip(campus.session_machine, campus.login_s, campus.logout_s, strict=True))
        self.stays = {m: [(float(i), float(o)) for k, i, o in rows if k == m] for m in machines}
        self.nights: list[float] = []
        if campus.reboot_s is not None:
            start = campus.start.hour * HOUR_S + campus.start.minute * 60.0
            at = campus.reboot_s - start
            while at <= campus.span_s:
                if at >= 0:
                    self.nights.append(at)
                at += DAY_S

    def is_open(self, machine: int, time_s: float) -> bool:
        """Whether the machine's cluster is open."""
        clusters: list[ClusterSpec] = self.campus.clusters
        hours = clusters[int(self.campus.machine_cluster[machine])].hours.text
        if hours == WEEKDAYS:
            start = self.campus.start
            into_day = start.hour * HOUR_S + start.minute * 60.0 + time_s
            weekday = int(start.weekday() + into_day // DAY_S) % 7
            return weekday < 5 and 9 * HOUR_S <= into_day % DAY_S < 17 * HOUR_S
        return hours == "always"

    def owned(self, machine: int, time_s: float) -> bool:
        """Whether an owner sits there once everything of that second has happened."""
        return any(i <= time_s < o for i, o in self.stays[machine])

    def reboots(self, machine: int) -> list[float]:
        """Reboots of a machine: log-outs of the same second come before, log-ins after."""
        return [n for n in self.nights if not any(i < n < o for i, o in self.stays[machine])]

    def idle_since(self, machine: int, time_s: float) -> float | None:
        """The last log-out or reboot until then; None if there was none."""
        moments = [o for _, o in self.stays[machine] if o <= time_s]
        moments += [r for r in self.reboots(machine) if r <= time_s]
        return max(moments, default=None)

    def may_start(self, machine: int, time_s: float) -> bool:
        """Whether the owner is away and the idle-before-job delay has passed."""
        if self.owned(machine, time_s):
            return False
        since = self.idle_since(machine, time_s)
        if since is None:
            return True
        campus = self.campus
        is_open = self.is_open(machine, since)
        delay = campus.idle_before_job_open_s if is_open else campus.idle_before_job_closed_s
        return time_s >= since + delay

    def expected_end(self, job: int, machine: int, start_s: float) -> tuple[float, str]:
        """When and how a run ends; at equal times: job end, reboot, log-in, kill."""
        run_s, kill_s = self.campus.run_s[job], self.campus.kill_s[job]
        ends = [(start_s + run_s, 0, "completed")] if run_s == run_s else []
        ends += [(r, 1, "reboot") for r in self.reboots(machine) if r > start_s]
        ends += [(i, 2, "owner") for i, _ in self.stays[machine] if i > start_s]
        ends += [(float(kill_s), 3, "removed")] if kill_s == kill_s else []
        time_s, _, ending = min(ends, default=(float("inf"), 9, "open"))
        return float(time_s), ending

    def sleeps(self, machine: int, time_s: float, run_ended_s: float) -> bool:
        """Whether an idle machine sleeps, given when the last run there ended."""
        since = max(self.idle_since(machine, time_s) or 0.0, run_ended_s)
        spec: ClusterSpec = self.campus.clusters[int(self.campus.machine_cluster[machine])]
        is_open = self.is_open(machine, since)
        return time_s >= since + (spec.sleep_after_open_s if is_open else spec.sleep_after_closed_s)

    def leaves(self, machine: int, time_s: float) -> float:
        """When nobody sits at the machine any more who came until a moment."""
        until = time_s
        while later := [o for i, o in self.stays[machine] if i <= until < o]:
            until = max(later)
        return until

    def expected_turns(
        self, job: int, machine: int, start_s: float, setup_s: float, saved_s: float
    ) -> tuple[list[tuple[float, str]], float]:
        """All turns of a run under the campus's rules, the last its end; and seconds worked."""
        run_s, kill_s = float(self.campus.run_s[job]), float(self.campus.kill_s[job])
        kill_s = kill_s if kill_s == kill_s else float("inf")
        patience_s = self.campus.run_rules.suspend_s
        left_s = setup_s + run_s - saved_s if run_s == run_s else float("inf")
        now, busy_s, turns = start_s, 0.0, list[tuple[float, str]]()
        while True:
            login = min((i for i, _ in self.stays[machine] if i > now), default=float("inf"))
            reboot = min((r for r in self.reboots(machine) if r > now), default=float("inf"))
            ends = [(now + left_s, 0, "completed"), (reboot, 1, "reboot"), (kill_s, 3, "removed")]
            ends.append((login, 4, "suspended") if patience_s else (login, 2, "owner"))
            time_s, _, what = min(ends)
            turns.append((time_s, what if time_s < float("inf") else "open"))
            busy_s, left_s = busy_s + time_s - now, left_s - (time_s - now)
            if what != "suspended" or time_s == float("inf"):
                return turns, max(0.0, busy_s - setup_s)
            leaves = self.leaves(machine, time_s)
            rests = [(time_s + patience_s, 1, "owner"), (kill_s, 3, "removed")]
            if leaves <= time_s + patience_s:
                is_night = leaves in self.nights
                rests[0] = (leaves, 1, "reboot") if is_night else (leaves, 4, "resumed")
            now, _, what = min(rests)
            turns.append((now, what))
            if what != "resumed":
                return turns, max(0.0, busy_s - setup_s)


TURNS = {COMPLETED: "completed", REMOVED: "removed", SUSPENDED: "suspended", RESUMED: "resumed"}


class LongRun(NamedTuple):
    """One run of a job with all its turns; the last is its end, missing where it is open."""

    job: int
    machine: int
    start_s: float
    turns: list[tuple[float, str]]


def long_runs_of(told: list[Event]) -> list[LongRun]:
    """The runs in a recorded stream, by start, with their suspensions."""
    going: dict[int, LongRun] = {}
    runs = []
    for time_s, kind, subject, extra in told:
        if kind == STARTED:
            assert subject not in going, "a job runs twice at once"
            going[subject] = LongRun(subject, extra[0], time_s, [])
            runs.append(going[subject])
        elif subject in going and (kind in TURNS or kind == EVICTED):
            going[subject].turns.append((time_s, TURNS.get(kind, str(extra))))
            if kind in (COMPLETED, EVICTED, REMOVED):
                del going[subject]
    return runs


def runs_of(told: list[Event], end_s: float) -> list[Run]:
    """The runs in a recorded stream, by start; those still going end at `end_s`, ``open``."""
    going: dict[int, tuple[int, float]] = {}
    runs = []
    for time_s, kind, subject, extra in told:
        if kind == STARTED:
            assert subject not in going, "a job runs twice at once"
            going[subject] = (extra[0], time_s)
        elif kind in (COMPLETED, EVICTED, REMOVED) and subject in going:
            ending = str({COMPLETED: "completed", REMOVED: "removed"}.get(kind, extra))
            machine, start_s = going.pop(subject)
            runs.append(Run(subject, machine, start_s, time_s, ending))
    runs += [Run(job, m, s, end_s, "open") for job, (m, s) in going.items()]
    return sorted(runs, key=lambda run: (run.start_s, run.job))
