"""A first start with several logs, one of them long and another empty."""

import time
from pathlib import Path

from tests.service.running.event_log import EventLog
from tests.service.running.small_site import SmallSite
from tests.service.running.test_two_access_points import TABLE

JOBS = 300
RUN_S = 2.0


def test_what_a_long_log_tells_is_decided_at_its_own_time_whatever_others_are_read_before(
    tmp_path: Path,
) -> None:
    begin_s = time.time() - 10.0 * JOBS
    full, empty = EventLog(tmp_path / "full"), EventLog(tmp_path / "empty")
    empty.path.touch()
    for job in range(1, JOBS + 1):
        full.at(begin_s + 5 * job)
        full.submit(job)
        full.at(begin_s + 5 * job + 3)
        full.start(job, job % 7)
        full.at(begin_s + 5 * job + 3 + RUN_S)
        full.complete(job)
    # besides it, empty files, one of which is read first
    others = [TABLE.format(label=f"a{n}", paths=f'"{empty.path}"') for n in range(3)]
    tables = [*others, TABLE.format(label="full", paths=f'"{full.path}"'), "[policies.fifo]\n"]
    site = SmallSite(tmp_path, tables="".join(tables))
    with site.daemon as daemon:
        status = daemon.wait_until("all known", lambda s: s["jobs"]["completed"] == JOBS)
        assert status["late"] == 0
        assert status["wait_s"]["all"]["mean"] == 3.0
        assert daemon.stop() == 0
    with site.journal() as journal:
        decided = [decision for _, decision in journal.decisions()]
    at_s = [round(decision.time_s - begin_s) for decision in decided]
    assert set(at_s) == {5 * job for job in range(1, JOBS + 1)}, "each when it was submitted"
