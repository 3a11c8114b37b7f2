"""SIGHUP: the new configuration is built and swapped in, or the old one stays with a note."""

import signal
from pathlib import Path
from typing import Any

from tests.service.running.small_site import LOG_TABLE, SmallSite

TWO_POLICIES = "[policies.bandit]\nepsilon = {epsilon}\n[policies.fifo]\n"


def reload(site: SmallSite, sign: str) -> None:
    """Request a reload and wait until this event is logged."""
    count = site.log_text().count(sign)
    assert site.daemon.process is not None
    site.daemon.process.send_signal(signal.SIGHUP)
    site.daemon.wait_until(sign, lambda _: site.log_text().count(sign) > count, within_s=10)


def counters(site: SmallSite) -> dict[str, float]:
    """Every counter that a reload or a restart has no business with.

    Rows of inputs grow by themselves: while nothing happens, the moves of the clock are recorded.
    """
    return {
        name: value
        for name, value in site.metrics().items()
        if value == value
        and ("_total" in name or "job_wait_seconds" in name or "reward" in name)
        and "process_" not in name
        and 'table="inputs"' not in name
    }


def learned(status: dict[str, Any]) -> Any:
    return next(p["learned"] for p in status["policies"] if p["name"] == "bandit")


def test_settings_change_in_place_and_everything_goes_on(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + TWO_POLICIES.format(epsilon=0.1))
    site.log.run(range(1, 60))
    with site.daemon as daemon:
        before, counted = site.wait_until_applied(), counters(site)
        assert learned(before)["rows"]
        site.configure(
            head='mode = "shadow"\nstale_after_s = 77.0\nlog_format = "json"\n',
            tables=LOG_TABLE + "[policies.lowest_watts]\n" + TWO_POLICIES.format(epsilon=0.9),
        )
        reload(site, "config_reloaded")
        after = daemon.status()
        assert after["notes"] == [
            "policies that start afresh: lowest_watts",
            "needs a restart to change: log_format",
        ]
        assert learned(after) == learned(before)
        assert after["jobs"] == before["jobs"]
        assert after["adapters"] == before["adapters"]
        assert counters(site).items() >= counted.items()
        assert site.log_text().count("adapter_opened") == 1  # the log was not even let go
        job = "60.0"
        site.log.submit(60)
        site.wait_until_applied()
        explained = {p["name"]: p for p in daemon.get(f"/api/v1/explain/{job}")["policies"]}
        assert "90% of its choices are random" in explained["bandit"]["explanation"]
        assert "lowest_watts" in explained

        site.log.run(range(61, 90))
        ended, counted = site.wait_until_applied(), counters(site)
        site.kill()
        daemon.start()
        again = site.wait_until_applied()
        assert learned(again) == learned(ended)
        assert again["jobs"] == ended["jobs"]
        assert counters(site).items() >= counted.items()
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_a_wrong_new_file_keeps_the_old_and_says_why(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1, 2])
    with site.daemon as daemon:
        before = site.wait_until_applied()
        for wrong in ("reconsider_z = 7.0\n", "no toml at all\n", "seed = -1\n"):
            site.configure(head=wrong)
            reload(site, "config_reload_failed")
        site.config.unlink()
        reload(site, "config_reload_failed")
        after = daemon.status()
        (note,) = after["notes"]
        assert note == (
            f"reload refused: {site.config}: cannot be read: No such file or directory; expected "
            "a file as `outrider check-config --example` prints it"
        )
        assert "did you mean" in site.log_text()
        assert [p["name"] for p in after["policies"]] == [p["name"] for p in before["policies"]]
        site.log.run([3])
        site.wait_until_applied()
        site.configure()
        reload(site, "config_reloaded")
        assert daemon.status()["notes"] == []
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_adapters_come_go_and_change(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    more = LOG_TABLE.replace("adapters.log", "adapters.more").replace("EventLog", "MoreLog")
    more = more.replace("{log}", str(tmp_path / "MoreLog"))
    site.log.run([1])
    with site.daemon as daemon:
        site.wait_until_applied()
        site.configure(tables=LOG_TABLE + more)
        reload(site, "config_reloaded")
        first, site.log.path = site.log.path, tmp_path / "MoreLog"
        site.log.run([2])
        site.log.path = first
        site.log.run([3])
        both = site.wait_until_applied()
        assert {a["label"]: a["events"]["completed"] for a in both["adapters"]} == {
            "log": 2,
            "more": 1,
        }
        site.configure(tables=more + "inotify = false\n")  # one goes, the other changes
        reload(site, "config_reloaded")
        daemon.wait_until("up", lambda s: s["adapters"][0]["up"])
        site.log.run([4])  # no adapter reads this one any longer
        site.log.path = tmp_path / "MoreLog"
        site.log.run([5])
        alone = daemon.wait_until("all taken in", lambda s: s["jobs"]["completed"] == 4)
        assert [a["label"] for a in alone["adapters"]] == ["more"]
        assert alone["adapters"][0]["events"]["completed"] == 2
        site.kill()
        daemon.start()
        again = daemon.wait_until("up", lambda s: s["adapters"][0]["up"])
        assert again["jobs"] == alone["jobs"]
        assert again["adapters"][0]["events"] == alone["adapters"][0]["events"]
        site.log.path = first
        site.configure()  # the first comes back where it was left
        reload(site, "config_reloaded")
        daemon.wait_until("all taken in", lambda s: s["jobs"]["completed"] == 5)
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_a_log_added_later_does_not_count_its_past(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1])
    old = tmp_path / "OldLog"
    added = f'[adapters.old]\ntype = "logtail"\npaths = ["{old}"]\nstart_at = "now"\n'
    with site.daemon as daemon:
        site.wait_until_applied()
        first, site.log.path = site.log.path, old
        site.log.run(range(100, 200))
        site.log.counts.clear()
        site.log.counts.update(submitted=1, started=1, completed=1)
        site.log.path = first
        site.configure(tables=LOG_TABLE + added)
        reload(site, "config_reloaded")
        daemon.wait_until("read", lambda s: "old: first read while running" in str(s["notes"]))
        site.log.path = old
        site.log.run([200])
        site.log.path = first
        site.log.run([2])
        status = site.wait_until_applied()
        assert status["jobs"]["completed"] == 3
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_observing_only_takes_every_seat_away_and_shadow_gives_them_back(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1])
    with site.daemon as daemon:
        site.wait_until_applied()
        site.configure(head='mode = "observe"\n')
        reload(site, "config_reloaded")
        site.log.run([2, 3])
        status = site.wait_until_applied()
        assert (status["mode"], status["policies"]) == ("observe", [])
        assert status["notes"] == [
            "nothing is decided: the policies are paused and keep what they learned"
        ]
        assert "config_reloaded                mode=observe" in site.log_text()
        site.configure()
        reload(site, "config_reloaded")
        site.log.run([4])
        [policy] = site.wait_until_applied()["policies"]
        assert (policy["name"], policy["decisions"]) == ("bandit", 2), "and what it learned"
        assert daemon.stop() == 0
    with site.journal() as journal:
        decided = {decision.job for _, decision in journal.decisions()}
    assert decided == {f"{site.log.schedd}#{number}.0" for number in (1, 4)}
