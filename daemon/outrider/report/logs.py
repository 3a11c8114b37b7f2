"""Summary of a site from its logs alone: counts of `ingest`, waits by user, wasted work."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf, nan
from typing import Any

from outrider.engine.accounting.distribution import Distribution, summary
from outrider.engine.state.site import Site
from outrider.model.events import STARTED, Event
from outrider.model.jobs import Job
from outrider.replay.log_files import Ingestion, LogFile
from outrider.report.figures import UNKNOWN
from outrider.report.offenders import LISTED, offenders
from outrider.report.runs import RUN_KINDS, Runs
from outrider.report.windows import Window

_EVER = Window(-inf, inf)


def read_logs(
    files: Sequence[LogFile], progress: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """Return the object of ``outrider ingest --json``.

    It is that of `outrider.replay.log_files.ingest`, with ``users_who_wait`` (the longest sum of
    waits first; seconds) and ``offenders`` as in a report. Logs have no watts, so energy is None.

    Raises:
        TraceError: a file cannot be read to its end.
    """
    cpu_s = time.process_time()
    ingestion = Ingestion(files)
    normaliser = ingestion.merger.normaliser
    runs = Runs(_EVER, ingestion.site, _unknown_j, normaliser.job_names)
    waits = UserWaits(ingestion.site)

    def watched(events: Iterable[Event]) -> Iterator[Event]:
        take_run, take_wait = runs.take, waits.take
        for event in events:
            if event[1] in RUN_KINDS:
                take_run(event)
                if event[1] == STARTED:
                    take_wait(event)
            yield event

    ingestion.run(progress, watched)
    runs.close(ingestion.site.now)
    report = ingestion.report()
    report["cpu_s"] = time.process_time() - cpu_s
    report["users_who_wait"] = waits.longest()
    report["offenders"] = offenders(runs, normaliser.machine_names, UNKNOWN)
    return report


class UserWaits:
    """Waits of each user's jobs, from eligibility to the first start.

    Args:
        site: of the engine that takes the events.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._waits: defaultdict[str, Distribution] = defaultdict(lambda: Distribution(exact=True))

    def take(self, event: Event) -> None:
        """Count a start that the engine has not applied yet."""
        time_s, _, subject, _ = event
        job = self._site.jobs.get(subject)
        if job is None or job.first_start_s is not None:
            return
        wait_s = job.wait_s(time_s)
        if wait_s is not None:
            self._waits[job.spec.user].add(wait_s)

    def longest(self) -> list[dict[str, Any]]:
        """Return the users whose jobs waited longest in total (seconds), without those at 0."""
        rows = [(user, waits) for user, waits in self._waits.items() if waits.total > 0.0]
        rows.sort(key=lambda row: (-row[1].total, row[0]))
        return [
            {"user": user, "sum": waits.total} | summary([waits]) for user, waits in rows[:LISTED]
        ]


def _unknown_j(job: Job, run_s: float, now: float) -> float:
    return nan
