"""Thousands of logs, a sparse one and one that reports foreign jobs, beside an event log."""

import os
import resource
from pathlib import Path
from typing import Any

import pytest

from tests.adapters.readers.samples import SCHEDD, SUBMIT_HOST
from tests.service.running.small_site import LOG_TABLE, SmallSite

WITHIN_S = 60.0
FEW = 1_024
"""Descriptors of the daemon."""


def site_with_users_logs(folder: Path, start_at: str) -> SmallSite:
    """Return a site whose adapter follows the event log and users' own logs."""
    paths = f'["{{log}}", "{folder}/home/*.log"]'
    tables = LOG_TABLE.replace('["{log}"]', paths).replace("beginning", start_at)
    (folder / "home").mkdir()
    return SmallSite(folder, tables=tables)


def completed(n: int) -> Any:
    """Return a check that this many jobs of the event log have ended."""
    return lambda status: status["adapters"][0]["events"].get("completed", 0) == n


@pytest.mark.long
def test_five_thousand_logs_of_a_user_leave_event_log_and_page_alone(tmp_path: Path) -> None:
    site = site_with_users_logs(tmp_path, "beginning")
    host = SUBMIT_HOST.replace(SCHEDD, "mallory")
    for number in range(5_000):
        text = f"000 ({number:03d}.000.000) 2026-11-21 10:00:00 Job submitted from host: {host}\n"
        (tmp_path / "home" / f"u{number}.log").write_text(f"{text}...\n")
    site.log.run([1, 2])
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (FEW, before[1]))
    try:
        site.daemon.start(WITHIN_S)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    try:
        site.daemon.wait_until("the event log is read", completed(2), WITHIN_S)
        status = site.daemon.wait_until(
            "all are followed", lambda s: s["adapters"][0]["events"]["submitted"] == 1_002, WITHIN_S
        )
        assert "5,000 logs match" in status["adapters"][0]["note"]
        site.log.run([3])
        site.daemon.wait_until("its news is read", completed(3), WITHIN_S)
        process = site.daemon.process
        assert process is not None
        assert len(list(Path(f"/proc/{process.pid}/fd").iterdir())) < FEW // 2
    finally:
        assert site.daemon.stop() == 0


@pytest.mark.long
def test_a_sparse_log_neither_delays_news_nor_ends_jobs_of_others(tmp_path: Path) -> None:
    site = site_with_users_logs(tmp_path, "now")
    site.log.run([1])
    sparse = tmp_path / "home" / "sparse.log"
    sparse.write_bytes(site.log.path.read_bytes())
    os.truncate(sparse, 1 << 40)
    with site.daemon as daemon:
        daemon.wait_until(
            "history is read", lambda s: s["ledger"]["snapshot_age_s"] is not None, WITHIN_S
        )
        site.log.run([2])
        status = daemon.wait_until("news is read", completed(1), WITHIN_S)
        assert set(status["adapters"][0]["rejected"]) <= {"garbage", "of_another_log"}
        assert daemon.stop() == 0
