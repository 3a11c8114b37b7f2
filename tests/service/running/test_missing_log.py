"""A log that vanishes and returns; garbage in it; a past that does not count; two logs."""

from pathlib import Path
from typing import Any

from tests.service.running.small_site import LOG_TABLE, SmallSite

NOW = LOG_TABLE.replace('"beginning"', '"now"')


def began(status: dict[str, Any]) -> bool:
    """Return whether history has been read: the first snapshot follows immediately."""
    return status["ledger"]["snapshot_age_s"] is not None


def test_a_log_that_vanishes_goes_stale_and_one_that_returns_loses_nothing(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, head="stale_after_s = 1.0\n")
    site.log.run([1, 2])
    with site.daemon as daemon:
        site.wait_until_applied()
        assert site.metrics()['outrider_adapter_up{adapter="log"}'] == 1
        away = site.log.path.rename(tmp_path / "taken-away")
        site.log.path = away
        site.log.run([3])  # the batch system still holds the file open
        site.wait_until_applied()
        gone = daemon.wait_until("stale", lambda s: not s["adapters"][0]["up"], within_s=10)
        assert gone["adapters"][0]["input_age_s"] > 1.0
        assert "EventLog is not there" in gone["adapters"][0]["note"]
        metrics = site.metrics()
        assert metrics['outrider_adapter_up{adapter="log"}'] == 0
        assert metrics['outrider_input_age_seconds{adapter="log"}'] > 1.0
        site.log.path = tmp_path / "EventLog"
        site.log.run([4, 5])
        back = site.wait_until_applied()
        back = daemon.wait_until("up again", lambda s: s["adapters"][0]["up"], within_s=10)
        assert back["adapters"][0]["note"] == ""
        assert site.metrics()['outrider_adapter_up{adapter="log"}'] == 1
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_garbage_in_the_middle_of_a_log_is_counted_and_what_follows_is_read(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1])
    site.log.raw(b"this is no record at all\n...\n")
    site.log.raw(bytes(range(256)) * 8 + b"\n...\n")
    site.log.raw(b"005 (002.000.000) 2026-99-99 99:99:99 Job terminated.\n...\n")
    site.log.run([3, 4])
    with site.daemon as daemon:
        status = site.wait_until_applied()
        rejected = status["adapters"][0]["rejected"]
        assert sum(rejected.values()) >= 3
        metrics = site.metrics()
        for reason, n in rejected.items():
            name = f'outrider_events_rejected_total{{adapter="log",reason="{reason}"}}'
            assert metrics[name] == n
        assert status["jobs"]["completed"] == 3
        site.kill()
        daemon.start()  # the counts of what is no event go on too
        assert site.daemon.status()["adapters"][0]["rejected"] == rejected
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_an_old_log_builds_state_silently_and_counts_from_now_on(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, tables=NOW)
    site.log.run(range(1, 400))
    site.log.submit(400, 401)
    site.log.start(400, 7)
    with site.daemon as daemon:
        old = daemon.wait_until("done with the past", began)
        assert (old["jobs"]["running"], old["jobs"]["queued"]) == (1, 1)
        assert [old["jobs"][k] for k in ("submitted", "completed", "removed")] == [0, 0, 0]
        assert old["wait_s"]["all"]["n"] == 0
        assert old["adapters"][0]["events"] == {}
        assert old["ledger"]["rows"] <= 2  # the tick that begins the present, and its decision
        site.log.counts.clear()
        site.log.complete(400)
        site.log.run([402])
        new = site.wait_until_applied()
        assert new["jobs"]["completed"] == 2
        assert new["jobs"]["submitted"] == 1
        site.kill()
        daemon.start()
        again = site.wait_until_applied()
        assert again["jobs"] == new["jobs"]
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts
    with site.journal() as journal:
        decided = {decision.job for _, decision in journal.decisions()}
        ended = {outcome.job for _, outcome in journal.outcomes()}
    assert decided <= {f"{site.log.schedd}#{number}.0" for number in (401, 402)}
    assert ended == {f"{site.log.schedd}#{number}.0" for number in (400, 402)}


def test_a_daemon_killed_or_stopped_while_it_reads_the_past_reads_it_again(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, head="snapshot_every_s = 0.1\n", tables=NOW)
    site.log.ahead_s = -3_600.0
    site.log.run(range(1, 3_000))
    site.log.submit(9_000)
    site.log.counts.clear()
    with site.daemon as daemon:
        daemon.kill()
        daemon.start()
        daemon.stop()
        daemon.start()
        status = daemon.wait_until("done with the past", began)
        assert (status["jobs"]["queued"], status["jobs"]["submitted"]) == (1, 0)
        site.log.run([9_001])
        site.wait_until_applied()
        assert daemon.stop() == 0
    with site.journal() as journal:
        assert f"{site.log.schedd}#9001.0" in {decision.job for _, decision in journal.decisions()}


def test_of_two_logs_one_may_be_missing_at_first(tmp_path: Path) -> None:
    tables = LOG_TABLE + LOG_TABLE.replace("adapters.log", "adapters.late").replace(
        "{log}", "{late}"
    )
    site = SmallSite(tmp_path, tables=tables.replace("{late}", str(tmp_path / "LateLog")))
    site.log.run([1])
    with site.daemon as daemon:
        status = site.wait_until_applied()
        late = next(a for a in status["adapters"] if a["label"] == "late")
        assert "is not there" in late["note"]
        first, site.log.path = site.log.path, tmp_path / "LateLog"
        site.log.run([2])
        site.log.path = first
        site.log.run([3])
        site.wait_until_applied()
        both = daemon.wait_until("up", lambda s: all(a["up"] for a in s["adapters"]))
        assert [a["note"] for a in both["adapters"]] == ["", ""]
        assert [a["events"].get("completed") for a in both["adapters"]] == [2, 1]
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts
