"""Counters continue after a restart, whether the daemon was stopped or killed."""

from pathlib import Path

import pytest

from tests.service.running.small_site import LOG_TABLE, SmallSite

CLUSTER = """
[clusters.lab]
match = ["*"]
active_w = 90.0
idle_w = 40.0

[policies.bandit]
[policies.random_match]
"""
GO_ON = (
    "events_total",
    "events_duplicate_total",
    "events_late_total",
    "job_wait_seconds",
    "energy_joules_total",
    "goodput_seconds_total",
    "job_utility_total",
    "badput_seconds_total",
    "decisions_total",
    "agreement_total",
    "evictions_total",
    "ledger_rows_total",
    "reward",
    "repairs_total",
    "vo_share_ratio",
    "fairness_utility_ratio",
)


INPUT_ROWS = 'outrider_ledger_rows_total{table="inputs"}'
"""Grows by itself: while nothing happens, the moves of the clock are recorded."""


def counters(site: SmallSite) -> dict[str, str]:
    """Return every continuing sample as text, in which NaN equals itself."""
    prefixes = tuple(f"outrider_{name}" for name in GO_ON)
    return {k: str(v) for k, v in site.metrics().items() if k.startswith(prefixes)}


def live_a_little(site: SmallSite) -> None:
    """Write jobs that complete, that are evicted, and that are reported twice."""
    for job in range(1, 40):
        site.log.submit(job)
        site.log.start(job, job % 5)
        if job % 4 == 0:
            site.log.evict(job)
        else:
            site.log.complete(job)
    whole = site.log.path.read_bytes()
    site.log.raw(whole[-300:].partition(b"...\n")[2])


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_the_metrics_after_are_the_metrics_before(tmp_path: Path, ending: str) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + CLUSTER)
    live_a_little(site)
    with site.daemon as daemon:
        before = site.wait_until_applied()
        daemon.wait_until("told twice", lambda s: s["adapters"][0]["duplicates"] > 0)
        counted = counters(site)
        for name in GO_ON:
            if name not in ("events_late_total", "repairs_total"):
                assert any(name in key and float(n) > 0 for key, n in counted.items()), name
        getattr(site if ending == "kill" else daemon, ending)()
        daemon.start()
        after = site.wait_until_applied()
        counted_after = counters(site)
        assert float(counted_after.pop(INPUT_ROWS)) >= float(counted.pop(INPUT_ROWS))
        assert counted_after == counted
        for key in ("jobs", "wait_s", "energy_wh", "evictions", "starts", "goodput_s", "repairs"):
            assert after[key] == before[key], key
        assert daemon.stop() == 0


def test_an_adapter_may_have_another_name_after_a_kill(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + "[policies.bandit]\n")
    live_a_little(site)
    with site.daemon as daemon:
        before = site.wait_until_applied()
        site.kill()
        site.configure(tables=LOG_TABLE.replace("adapters.log", "adapters.pool"))
        daemon.start()
        after = daemon.wait_until(
            "all heard twice",
            lambda s: s["adapters"][0]["duplicates"] > sum(site.log.counts.values()),
        )
        assert after["jobs"] == before["jobs"]
        site.log.run([100])
        daemon.wait_until(
            "news", lambda s: s["jobs"]["completed"] == before["jobs"]["completed"] + 1
        )
        assert daemon.stop() == 0
