"""Meters: how long a reading holds, and which part of what they measured each run had.

A meter tells the watts of a whole machine. They are split between its uses as the table would
have split its own watts (`working_part`), so that table and meters can be added up.
"""

from typing import Final, NamedTuple

import msgspec

METER_VALID_S: Final = 900.0
"""A reading holds so long at most: plugs report every 10 to 300 s, and one that fell silent for
longer must not vouch for what its machine does since."""


class Stretch(NamedTuple):
    """What a meter measured while its machine's state did not change.

    Attributes:
        purpose: what the part of the machine that ran no job was used for.
        rest_j: joules of that part.
        cpu_j: joules of each CPU at work.
        seconds: how long it was.
    """

    purpose: str
    rest_j: float
    cpu_j: float
    seconds: float


class Meter(msgspec.Struct):
    """What the meter of one machine has told.

    Attributes:
        time_s: of the last reading.
        watts: of the whole machine, at the last reading.
        until_s: the last reading holds until then.
        cpu_j: joules measured so far for each CPU at work.
        covered_s: seconds measured so far.
        runs: (joules per CPU, seconds) by job, of runs on the machine: what the two counters
            above showed whenever the run paused, less what they showed whenever it began to
            work. A run that began before the first reading began at 0.
    """

    time_s: float
    watts: float
    until_s: float
    cpu_j: float = 0.0
    covered_s: float = 0.0
    runs: dict[int, tuple[float, float]] = {}

    def read(self, watts: float, time_s: float) -> None:
        """The next reading; one that is older than the last tells nothing about now."""
        if time_s >= self.time_s:
            self.time_s, self.watts, self.until_s = time_s, watts, time_s + METER_VALID_S

    def count(self, stretch: Stretch) -> None:
        """A stretch is booked: the counters move past it."""
        self.cpu_j += stretch.cpu_j
        self.covered_s += stretch.seconds

    def run_works(self, job: int) -> None:
        """A run begins to work, or goes on; the counters stand at this moment."""
        cpu_j, covered_s = self.runs.get(job, (0.0, 0.0))
        self.runs[job] = (cpu_j - self.cpu_j, covered_s - self.covered_s)

    def run_pauses(self, job: int) -> None:
        """A run is suspended; the counters stand at this moment."""
        self.runs[job] = self.of_run(job, True)

    def of_run(self, job: int, working: bool) -> tuple[float, float]:
        """Joules per CPU and seconds measured of a run until the moment the counters stand at."""
        cpu_j, covered_s = self.runs.get(job, (0.0, 0.0))
        return (cpu_j + self.cpu_j, covered_s + self.covered_s) if working else (cpu_j, covered_s)


def working_part(busy: float, active_w: float, rest_w: float) -> float:
    """The part of a machine's measured watts that its working CPUs draw, 0 to 1.

    In proportion to what the table says for them and for the rest; where the table does not
    know, or says 0 for both, by CPUs.

    Args:
        busy: share of the machine's CPUs that work, from 0; above 1 where a site overbooks.
        active_w: watts of the whole machine at work, by the table; nan if unknown.
        rest_w: watts of the whole machine if it did what the rest of it does; nan if unknown.
    """
    rest = max(0.0, 1.0 - busy)
    whole_w = busy * active_w + rest * rest_w
    if whole_w > 0.0:
        return busy * active_w / whole_w
    return busy / (busy + rest)
