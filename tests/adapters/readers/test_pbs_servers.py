"""Names of jobs with the same number at two PBS servers: they differ."""

from pathlib import Path
from typing import Any

from outrider.replay.log_files import LogFile, ingest
from tests.adapters.readers.test_pbs_records import ended, line, pairs
from tests.service.running.small_site import SmallSite

TABLE = """
[adapters.pbs]
type = "logtail"
paths = ["{one}", "{two}"]
start_at = "beginning"
poll_s = 0.1
settle_s = 0.1

[policies.bandit]
"""
RECORDS = (line(0, "Q", "queue=long"), line(10, "S", pairs()), ended(99, 0))


def at_server(name: str, *records: str) -> str:
    """Return records of the job with the same number at another server."""
    return "".join(records).replace(";7.server;", f";7.{name};")


def test_two_servers_that_count_alike_tell_of_two_jobs(tmp_path: Path) -> None:
    whole: dict[str, dict[str, Any]] = {}
    for form in ("one file", "two files"):
        texts = [at_server("north", *RECORDS), at_server("south", *RECORDS)]
        files = []
        for n, text in enumerate(["".join(texts)] if form == "one file" else texts):
            path = tmp_path / f"{form}.{n}"
            path.write_text(text)
            files.append(LogFile(path))
        whole[form] = ingest(files)
    assert whole["one file"]["events"] == {"submitted": 2, "started": 2, "completed": 2}
    assert whole["two files"]["events"] == whole["one file"]["events"]
    assert whole["two files"]["repairs"] == {}


def test_the_daemon_keeps_them_apart_over_a_kill(tmp_path: Path) -> None:
    logs = {name: tmp_path / name for name in ("north", "south")}
    for name, path in logs.items():
        path.write_text(at_server(name, *RECORDS[:2]))
    tables = TABLE.format(one=logs["north"], two=logs["south"])
    site = SmallSite(tmp_path, tables=tables)
    with site.daemon as daemon:
        daemon.wait_until("both run", lambda s: s["jobs"]["running"] == 2)
        site.kill()
        daemon.start()
        with logs["north"].open("a") as log:
            log.write(at_server("north", RECORDS[2]))
        status = daemon.wait_until("one is done", lambda s: s["jobs"]["completed"] == 1)
        assert (status["jobs"]["running"], status["repairs"]) == (1, {})
        assert [policy["broken"] for policy in status["policies"]] == [None]
        (left,) = daemon.get("/api/v1/jobs")["jobs"]
        assert left["job"] == "7.south"
