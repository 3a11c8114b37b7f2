"""What metrics show of a core, by value; and that each that is declared is told."""

import asyncio
from typing import Any

import pytest

from outrider.api import JobSpec
from outrider.model.events import STARTED, SUBMITTED
from outrider.service.metrics.declarations import METRICS
from outrider.service.metrics.exporter import MetricsExporter
from outrider.service.metrics.exposition import expose
from outrider.service.metrics.store import MetricStore
from tests.fixtures.cores import RECORDING, T, core_of, tell
from tests.service.running.watched_campus import small_campus, watched

BY_THE_STORE = {"build_info"}
PUBLISHING = {"connected": True, "published": {"decisions": 1}, "behind": 0, "lost": 0}


def test_running_and_queued_jobs_are_counted() -> None:
    """How to test the value of a metric: tell a core what happened, and read the line."""
    core = core_of("log")
    events: list[Any] = [(T + n, SUBMITTED, f"{n}.0", JobSpec()) for n in range(3)]
    tell(core, "log", [*events, (T + 5, STARTED, "0.0", ("m1", 1))], T + 60)
    text = expose(MetricsExporter(core).take(RECORDING, 0.0), "text/plain")[0].decode()
    lines = text.splitlines()
    assert 'outrider_jobs{state="queued"} 2.0' in lines
    assert 'outrider_jobs{state="running"} 1.0' in lines


def test_every_metric_that_is_declared_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """One that is not would be shown as NaN, or as 0, for ever."""
    told: set[str] = set()
    for method in ("set", "set_observations", "choose_state"):
        inner = getattr(MetricStore, method)

        def noting(self: Any, name: str, *more: Any, inner: Any = inner, **named: Any) -> None:
            told.add(name)
            inner(self, name, *more, **named)

        monkeypatch.setattr(MetricStore, method, noting)
    core = asyncio.run(watched(small_campus(12, 3), policies={"survival": {}}))
    now_s = core.site.now
    tell(core, "campus", [(now_s, STARTED, "never submitted", ("m1", 1))], now_s + 60)
    core.sources["campus"].rejected["malformed"] += 1
    recording = RECORDING | {"rows": {"decisions": 1}}
    MetricsExporter(core).take(recording, 0.0, PUBLISHING)
    assert [metric.name for metric in METRICS if metric.name not in told | BY_THE_STORE] == []
