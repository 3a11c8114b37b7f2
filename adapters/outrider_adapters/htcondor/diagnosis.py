"""What a site should know of a pool before it lets Outrider watch it."""

from collections.abc import Iterator, Mapping

from outrider_adapters.htcondor.pool_calls import AccessPoint, PoolCalls
from outrider_adapters.logtail import LogtailSettings

Finding = tuple[str, str, str, str]
"""What, state (ok, warn, fail), what was found, and a remedy: as ``outrider doctor`` lists it."""


def diagnosed(
    calls: PoolCalls, event_logs: Mapping[str, LogtailSettings], queue_s: float
) -> Iterator[Finding]:
    """Who answers, and from where jobs are known.

    Args:
        calls: the pool.
        event_logs: those that can be read, by access point.
        queue_s: from one look at a queue to the next, where there is no log.
    """
    remedy = "let this host read (ALLOW_READ), or give it a token"
    try:
        slots = len(calls.collector.query(calls.slot_ads, "true", ["Name"]))
    except calls.failure as error:
        yield "collector", "fail", f"does not answer: {error}", remedy
    else:
        yield "collector", "ok", f"tells of {slots} slots", ""
    for point in calls.access_points:
        what = f"access point {point.name}"
        try:
            jobs = len(point.schedd.query("true", ["ClusterId"]))
        except point.failure as error:
            yield what, "fail", f"does not answer: {error}", remedy
            continue
        yield what, *_source(point, jobs, event_logs.get(point.name), queue_s)


def _source(
    point: AccessPoint, jobs: int, log: LogtailSettings | None, queue_s: float
) -> tuple[str, str, str]:
    if log is not None:
        return "ok", f"{jobs} jobs in the queue; event log {', '.join(log.paths)}", ""
    found = (
        f"{jobs} jobs in the queue and no event log that can be read: the queue is asked every "
        f"{queue_s:g} s, and of a job that began more than two runs between, two are told"
    )
    remedy = f'name its event log: event_logs = {{ "{point.name}" = "/var/log/condor/EventLog" }}'
    return "warn", found, remedy
