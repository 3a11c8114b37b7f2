"""Where the energy goes: joules by purpose and cluster, from machine states and table watts.

A machine's CPUs that run jobs draw their share of its active watts; the rest of it draws what
its state asks for (owner: active, idle, asleep). So the purposes never count a second twice and
their sum is the integral of power, also on machines with many CPUs. Unknown watts are nan, and
stay nan in every sum they enter: missing is not zero.
"""

from typing import Any, Final

from outrider.model.clusters import NEVER_S, ClusterSpec
from outrider.model.localtime import LocalTime
from outrider.model.machines import MachineSpec

GOODPUT: Final = "goodput"
BADPUT: Final = "badput"
OWNER: Final = "owner"
IDLE: Final = "idle"
SLEEP: Final = "sleep"
PURPOSES: Final = (GOODPUT, BADPUT, "open", IDLE, SLEEP, OWNER)

NAN: Final = float("nan")
GONE, IDLING, OWNED, ASLEEP = range(4)
_ALL_RESTS: Final = 1.0 - 1e-9


class EnergyBook:
    """Joules by purpose and cluster number, settled whenever a machine changes its state.

    An idle machine falls asleep by its cluster's declared habit (`ClusterSpec`), so that no
    feeder has to send an event for it; one that says so by an event of its own may.
    """

    def __init__(self, local_time: LocalTime) -> None:
        self._local_time = local_time
        self.joules: dict[str, list[float]] = {p: [] for p in PURPOSES if p != "open"}
        self._habits: list[ClusterSpec] = []
        self._sleeps: list[bool] = []
        self._cluster: list[int] = []
        self._state: list[int] = []
        self._since: list[float] = []
        self._sleeps_at: list[float] = []
        self._cpus: list[int] = []
        self._rest: list[float] = []
        self._active_w: list[float] = []
        self._idle_w: list[float] = []
        self._sleep_w: list[float] = []

    def join(self, m: int, spec: MachineSpec, cluster: int, habits: ClusterSpec) -> None:
        """A machine joins, idle, or tells anew what it is; `settle` it first."""
        while len(self._habits) <= cluster:
            self._habits.append(habits)
            self._sleeps.append(False)
            for column in self.joules.values():
                column.append(0.0)
        self._habits[cluster] = habits
        self._sleeps[cluster] = habits.sleeps
        while len(self._state) <= m:
            self._cluster.append(cluster)
            self._state.append(GONE)
            self._since.append(0.0)
            self._sleeps_at.append(NEVER_S)
            self._cpus.append(1)
            self._rest.append(1.0)
            for watts in (self._active_w, self._idle_w, self._sleep_w):
                watts.append(NAN)
        busy = (1.0 - self._rest[m]) * self._cpus[m]
        self._cluster[m] = cluster
        self._cpus[m] = max(1, spec.cpus)
        self._rest[m] = 1.0 - busy / self._cpus[m]
        self._active_w[m] = NAN if spec.active_w is None else spec.active_w
        unseen = spec.inferred
        self._idle_w[m] = NAN if spec.idle_w is None or unseen else spec.idle_w
        self._sleep_w[m] = NAN if spec.sleep_w is None or unseen else spec.sleep_w

    def enter(self, m: int, state: int, now: float) -> None:
        """The part of the machine that runs no job enters a state."""
        self.settle(m, now)
        self._state[m] = state
        if state == IDLING:
            cluster = self._cluster[m]
            if self._sleeps[cluster]:
                week_second = self._local_time.week_second(now)
                self._sleeps_at[m] = now + self._habits[cluster].sleep_after_s(week_second)

    def settle(self, m: int, now: float) -> None:
        """Book the time since the last change."""
        since = self._since[m]
        if now <= since:
            return
        self._since[m] = now
        rest = self._rest[m]
        if not rest:
            return
        share_s = rest * (now - since)
        state, cluster = self._state[m], self._cluster[m]
        if state == IDLING:
            sleeps_at = self._sleeps_at[m]
            if now > sleeps_at and rest > _ALL_RESTS:  # no CPU keeps it awake
                asleep_s = share_s if since > sleeps_at else rest * (now - sleeps_at)
                self.joules[SLEEP][cluster] += asleep_s * self._sleep_w[m]
                share_s -= asleep_s
            self.joules[IDLE][cluster] += share_s * self._idle_w[m]
        elif state == OWNED:
            self.joules[OWNER][cluster] += share_s * self._active_w[m]
        elif state == ASLEEP:
            self.joules[SLEEP][cluster] += share_s * self._sleep_w[m]

    def work(self, m: int, cpus: int, now: float) -> None:
        """CPUs begin to work for a job (a start, a resume)."""
        self.settle(m, now)
        self._rest[m] -= cpus / self._cpus[m]

    def rest(self, m: int, cpus: int, now: float) -> None:
        """CPUs stop working for a job; an idle machine begins to idle anew."""
        self.settle(m, now)
        self._rest[m] += cpus / self._cpus[m]
        if self._state[m] in (IDLING, ASLEEP):
            self.enter(m, IDLING, now)

    def run_j(self, m: int, cpus: int, run_s: float) -> float:
        """Joules of a run: its share of the machine's active watts."""
        return self._active_w[m] * run_s * cpus / self._cpus[m]

    def power_w(self, m: int, cpus: int, now: float) -> float:
        """Watts of a machine now, with so many CPUs at work; nan where they are unknown."""
        state = self._state[m]
        if state == GONE:
            return 0.0
        share = min(1.0, cpus / self._cpus[m])
        if state == OWNED or share >= 1.0:
            return self._active_w[m]
        rest_w = self._sleep_w[m] if self.is_asleep(m, now) else self._idle_w[m]
        return share * self._active_w[m] + (1.0 - share) * rest_w if share else rest_w

    def is_asleep(self, m: int, now: float) -> bool:
        """Whether it sleeps now: by an event, or by its cluster's habit."""
        state = self._state[m]
        return state == ASLEEP or (
            state == IDLING and self._rest[m] > _ALL_RESTS and now >= self._sleeps_at[m]
        )

    def state(self, m: int) -> int:
        """The state of the part that runs no job."""
        return self._state[m]

    def restart(self, now: float) -> None:
        """Forget the joules so far and count from `now` on."""
        for m in range(len(self._state)):
            self.settle(m, now)
            self._since[m] = max(now, self._since[m])
        for column in self.joules.values():
            column[:] = [0.0] * len(column)

    def save(self) -> dict[str, Any]:
        """What changes, as plain data; watts and habits come again with the machines."""
        return {
            "joules": self.joules,
            "state": self._state,
            "since": self._since,
            "sleeps_at": [None if s == NEVER_S else s for s in self._sleeps_at],
            "rest": self._rest,
        }

    def restore(self, saved: dict[str, Any], clusters: list[int]) -> None:
        """Go on from what `save` gave; `clusters[i]` is today's number of saved cluster i."""
        for purpose, column in saved["joules"].items():
            fresh = self.joules[purpose]
            fresh[:] = [0.0] * len(fresh)
            for old, joules in zip(clusters, column, strict=False):
                if old < len(fresh):
                    fresh[old] = joules
        self._state = list(saved["state"])
        self._since = list(saved["since"])
        self._sleeps_at = [NEVER_S if s is None else s for s in saved["sleeps_at"]]
        self._rest = list(saved["rest"])
