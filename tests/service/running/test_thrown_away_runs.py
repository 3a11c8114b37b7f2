"""Wasted runs in the API: their total time, and the longest."""

from outrider.api import Batch
from outrider.model.events import EVICTED, STARTED, SUBMITTED, NamedEvent
from outrider.model.jobs import JobSpec
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState
from outrider.service.views.explanation import explain
from outrider.service.web.endpoints.jobs import jobs
from tests.fixtures.cores import T, core_of, tell

CONFIG = {"adapters": {"log": {"type": "logtail", "paths": ["/nowhere"]}}}


def run_thrown_away(job: str, from_s: float, run_s: float) -> list[NamedEvent]:
    return [
        (from_s, STARTED, job, ("m1", 1)),
        (from_s + run_s, EVICTED, job, "owner"),
    ]


def told_after(events: list[NamedEvent]) -> dict[str, tuple[float, float]]:
    """Return the seconds of all wasted runs of each job, and of the longest one."""
    core = Core(check_config(CONFIG, "test"), [SourceState("log", "logtail", True, 5.0)])
    stream = core.take("log", Batch(events=events, cursor=None), T + 90_000)
    while core.step(stream, 100):
        pass
    rows = jobs(core, 10).jobs
    return {row.job: (row.lost_s, row.longest_lost_s) for row in rows}


def test_a_job_that_was_evicted_twice_lost_both_runs() -> None:
    events: list[NamedEvent] = [(T, SUBMITTED, name, JobSpec()) for name in ("never", "twice")]
    events += run_thrown_away("twice", T + 10, 7200.0)
    events += run_thrown_away("twice", T + 8000, 3600.0)
    assert told_after(events) == {"never": (0.0, 0.0), "twice": (10_800.0, 7200.0)}


def test_a_job_waits_from_when_it_could_first_run() -> None:
    core = core_of("log")
    events: list[NamedEvent] = [
        (T, SUBMITTED, "at once", JobSpec()),
        (T, SUBMITTED, "after another", JobSpec(eligible_s=T + 40)),
    ]
    tell(core, "log", events, T + 60)
    now_s = core.site.now
    waited = {row.job: row.waiting_s for row in jobs(core, 10).jobs}
    assert waited == {"at once": now_s - T, "after another": max(0.0, now_s - (T + 40))}
    explained = explain(core, "after another", [])
    assert explained is not None
    assert explained["waiting_s"] == waited["after another"]
