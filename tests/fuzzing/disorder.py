"""Random events of every kind in random order: well-formed, and mostly impossible.

Names are few, so that they collide: jobs start twice, end unknown, machines leave under runs.
Times mostly go on, stand still or step back. Some values are ones that no source may send.
"""

import random
from collections.abc import Callable
from math import inf, nan
from typing import Any

from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec, Resources

BEGIN_S = 1_700_000_000.0
JOBS_AT_ONCE = 25
MACHINES = [f"m{n}" for n in range(8)]

_CPUS = [1] * 24 + [2] * 6 + [4, 8, 0, -1, 2**31, 10**15]
_SECONDS = [None] * 6 + [30.0, 600.0, 7_200.0, 90_000.0] * 4 + [0.0, -5.0, 1e15, nan, inf]
_WATTS = [None] * 3 + [90.0, 250.0, 0.0] * 6 + [-1.0, nan, inf, 1e300]
_STEPS_S = [0.0] * 6 + [0.25, 1.0, 5.0, 30.0, 120.0] * 4 + [900.0, 4_000.0, -1.0, -20.0, -600.0]
_RARE_STEPS_S = [90_000.0, 900_000.0, -90_000.0]
_NO_TIMES_S = [0.0, -1e12, 1e12, 4e9]
_SLOTS = ["slot1", "slot1_1", "slot2"]
_CLASSES = ["", "", "", "fast", "large"]
_AMOUNTS = [None, None, 0.0, 1.0, 512.0, 4_096.0, -1.0, nan, inf]
_BARE = [
    ev.COMPLETED, ev.SUSPENDED, ev.RESUMED, ev.HELD, ev.RELEASED, ev.DISCONNECTED, ev.RECONNECTED,
]  # fmt: skip
_OF_MACHINES = [
    ev.OWNER_CAME, ev.OWNER_WENT, ev.USABLE, ev.REBOOTED, ev.LEFT, ev.ASLEEP, ev.WOKEN, ev.DRAINED,
]  # fmt: skip


class Disorder:
    """An endless source of events.

    Args:
        rng: all chance.

    Attributes:
        now_s: about where its clock stands; single events lie before and after it.
    """

    def __init__(self, rng: random.Random) -> None:
        self.now_s = BEGIN_S
        self._rng = rng
        self._first_job = 0
        self._makers: list[Callable[[], tuple[int, str, Any]]] = [
            *[self._submitted] * 8, *[self._started] * 12, *[self._bare] * 10,
            *[self._of_machine] * 8, *[self._ended_early] * 4, *[self._joined] * 3,
            self._changed, self._resized, self._power, self._eligible,
        ]  # fmt: skip

    def batch(self, size: int) -> list[NamedEvent]:
        """Return `size` events, not sorted."""
        return [self._event() for _ in range(size)]

    def _event(self) -> NamedEvent:
        rng = self._rng
        chance = rng.random()
        step_s = rng.choice(_RARE_STEPS_S if chance < 0.0002 else _STEPS_S)
        time_s = self.now_s + step_s
        if (chance > 0.0002 and 0.0 < step_s < 1_000.0) or step_s > 80_000.0:
            self.now_s = time_s
        if chance > 0.999:
            time_s = rng.choice(_NO_TIMES_S)
        kind, subject, extra = rng.choice(self._makers)()
        return time_s, kind, subject, extra

    def _job(self) -> str:
        if self._rng.random() < 0.02:
            self._first_job += 1
        return f"{self._first_job + self._rng.randrange(JOBS_AT_ONCE)}.0"

    def _machine(self) -> str:
        return self._rng.choice(MACHINES)

    def _spec(self) -> JobSpec:
        rng = self._rng
        return JobSpec(
            user=rng.choice(["ada", "bob", ""]),
            vo=rng.choice(["all", "bio", "phys"]),
            job_class=rng.choice(["batch", "interactive"]),
            cpus=rng.choice(_CPUS),
            estimate_s=rng.choice(_SECONDS),
            eligible_s=rng.choice([None, None, None, self.now_s, self.now_s + 300.0, -1e12]),
            seen_submit=rng.random() < 0.9,
            recalled=rng.random() < 0.1,
            resources=self._resources(),
            eligible=rng.choice(_CLASSES),
        )

    def _resources(self) -> Resources | None:
        rng = self._rng
        if rng.random() < 0.7:
            return None
        named = (("licence", rng.choice([0.0, 1.0, 2.0])),) if rng.random() < 0.3 else ()
        return Resources(rng.choice(_AMOUNTS), rng.choice(_AMOUNTS), named)

    def _submitted(self) -> tuple[int, str, Any]:
        return ev.SUBMITTED, self._job(), self._spec()

    def _started(self) -> tuple[int, str, Any]:
        rng = self._rng
        run = (self._machine(), rng.choice(_CPUS))
        return ev.STARTED, self._job(), run if rng.random() < 0.7 else (*run, rng.choice(_SLOTS))

    def _bare(self) -> tuple[int, str, Any]:
        return self._rng.choice(_BARE), self._job(), None

    def _of_machine(self) -> tuple[int, str, Any]:
        return self._rng.choice(_OF_MACHINES), self._machine(), None

    def _ended_early(self) -> tuple[int, str, Any]:
        kind = self._rng.choice([ev.EVICTED, ev.REMOVED])
        return kind, self._job(), self._rng.choice(ev.EVICTION_REASONS)

    def _joined(self) -> tuple[int, str, Any]:
        rng = self._rng
        spec = MachineSpec(
            cluster=rng.choice(["lab", "office", "default"]),
            cpus=rng.choice(_CPUS),
            active_w=rng.choice(_WATTS),
            idle_w=rng.choice(_WATTS),
            sleep_w=rng.choice(_WATTS),
            inferred=rng.random() < 0.2,
            usable=rng.random() < 0.8,
            speed=rng.choice([1.0] * 8 + [0.5, 2.0, 0.0, nan, inf]),
            resources=self._resources(),
        )
        return ev.JOINED, self._machine(), spec

    def _changed(self) -> tuple[int, str, Any]:
        rng, spec = self._rng, self._spec()
        fields = ["vo", "cpus", "estimate_s", "job_class", "user", "resources", "eligible"]
        names = rng.sample(fields, rng.randint(1, 3))
        return ev.CHANGED, self._job(), {name: getattr(spec, name) for name in names}

    def _resized(self) -> tuple[int, str, Any]:
        return ev.RESIZED, self._job(), self._rng.choice(_CPUS)

    def _eligible(self) -> tuple[int, str, Any]:
        rng = self._rng
        machines = rng.sample([*MACHINES, "never heard of"], rng.randint(0, 5))
        return ev.ELIGIBLE, rng.choice(_CLASSES[3:]), tuple(machines)

    def _power(self) -> tuple[int, str, Any]:
        return ev.POWER, self._machine(), self._rng.choice([80.0, 120.0, 0.0, -5.0, 1e300])
