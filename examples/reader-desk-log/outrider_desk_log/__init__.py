"""Log reader on one screen: the log of a small batch system, one event per line.

::

    1795231020 submit 17 ann 2
    1795231025 start 17 pc-4
    1795231049 done 17
"""

import re
from collections import Counter

from outrider.api import JobSpec, LogReader, NamedEvent, Reading, events

MOST_LINE_BYTES = 1 << 20
"""Maximum length of a record; longer text without a line end is rejected."""
LINE = re.compile(rb"\d{9,10} (submit|start|done) \w", re.MULTILINE)


class DeskLogReader(LogReader):
    """Reader of the lines above; a job's CPUs are reported at submission."""

    name = "desk-log"
    description = "the desk batch system's log"
    api_version = 1

    def __init__(self, options):
        super().__init__(options)
        self.system = options.system or options.log_name  # a number alone is not unique
        self.cpus = {}  # of jobs that have not ended

    @classmethod
    def recognises(cls, head):
        return LINE.match(head) is not None

    def read(self, data, final=False):
        end = data.rfind(b"\n") + 1  # what follows is half a line: it is fed again
        found, ignored, rejected = [], Counter(), Counter()
        lines = data[:end].split(b"\n")[:-1]
        for line in lines:
            try:
                event = self.event_of(line.decode())
            except (ValueError, KeyError) as error:
                rejected[type(error).__name__] += 1
                continue
            if event is None:
                ignored["no event of ours"] += 1
            else:
                found.append(event)
        if len(data) - end > MOST_LINE_BYTES:
            end = len(data)
            rejected["endless line"] += 1
        records = len(found) + ignored.total() + rejected.total()
        return Reading(found, end, records, len(lines), dict(ignored), dict(rejected))

    def event_of(self, line) -> NamedEvent | None:
        time, what, number, *more = line.split()
        time_s = float(time)
        if not 0 < time_s < 1e11:
            raise ValueError("no time of ours")  # and neither "nan" nor "1e999"
        job = f"{self.system}:{number}" if self.system else number
        if what == "submit":
            user, cpus = more
            self.cpus[number] = max(1, int(cpus))
            return time_s, events.SUBMITTED, job, JobSpec(user=user, cpus=self.cpus[number])
        if what == "start":
            (machine,) = more
            return time_s, events.STARTED, job, (machine, self.cpus.get(number, 1))
        if what == "done":
            self.cpus.pop(number, None)
            return time_s, events.COMPLETED, job, None
        return None

    def save(self):  # the next file, or the next daemon, goes on from here
        return self.cpus

    def restore(self, saved):
        self.cpus = saved

    def inherit(self, saved):  # a log that was rotated: its jobs go on
        self.cpus = saved
