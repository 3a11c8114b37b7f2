"""Brokers and daemons that are killed, hang or refuse: nothing is lost or delayed."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from tests.peers.mosquitto import USERS, Mosquitto
from tests.service.mqtt.listener import Listener
from tests.service.mqtt.publishing_site import (
    campus_site,
    mqtt_table,
    recorded,
    wait_until_all_is_heard,
)
from tests.service.running.disks import fill, relieve, small_disk
from tests.service.running.small_site import LOG_TABLE, SmallSite
from tests.service.running.test_reload import reload

pytestmark = pytest.mark.mosquitto


def wait_for_more(listener: Listener, within_s: float = 30.0) -> None:
    """Wait until decisions come that were not there yet."""
    before = len(listener.on("decisions"))
    listener.wait_for("more decisions", lambda: listener.on("decisions")[before:], within_s)


@pytest.mark.slow
def test_killed_brokers_and_daemons_lose_nothing_and_what_comes_twice_has_its_number(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = campus_site(tmp_path, mqtt_table(broker), speed=15_000.0)
    kills = 0
    with site.daemon as daemon:
        wait_for_more(listener)
        for _ in range(3):
            broker.kill()
            seen = daemon.status()["ledger"]["last_seq"]
            daemon.wait_until("going on", lambda s, n=seen: s["ledger"]["last_seq"] > n + 200)  # type: ignore[misc]
            broker.start()
            listener.wait_until_there()  # a broker killed now may have kept nothing for it
            wait_for_more(listener)
            daemon.kill()
            daemon.start()
            wait_for_more(listener)
            kills += 2
        wait_until_all_is_heard(site, listener, at_least=1_000)
        status = daemon.status()
        assert daemon.stop() == 0
    rows = recorded(site)
    heard = listener.seqs("decisions", "evictions")
    twice = len(heard) - len(set(heard))
    print(f"{kills} kills, {len(rows)} rows, {twice} heard twice")  # noqa: T201 - the measurement
    assert len(rows) > 1_000
    for one in listener.on("decisions"):
        assert one.fields == rows[one.fields["seq"]]
    assert twice < 0.5 * len(rows)
    assert sum(status["mqtt"]["published"].values()) >= len(rows) - 100 * kills
    assert status["mqtt"]["lost"] == 0


def test_what_a_killed_broker_confirmed_in_its_last_seconds_is_sent_again(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    """The broker confirms before it saves, so delivery of the last rows is unknown."""
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker))
    site.log.run([1, 2])
    with site.daemon as daemon:
        wait_until_all_is_heard(site, listener)
        site.log.run([3])
        third = f"{site.log.schedd}#3.0"
        before = listener.wait_for(
            "job 3", lambda: (d for d in listener.on("decisions") if d.fields["job"] == third)
        )
        broker.kill()
        daemon.wait_until("told", lambda s: not s["mqtt"]["connected"])
        broker.start()
        again = listener.wait_for(
            "job 3 again",
            lambda: [d for d in listener.on("decisions") if d.fields["job"] == third][1:],
        )
        assert again == before
        wait_until_all_is_heard(site, listener)
        assert daemon.stop() == 0


def test_a_restarted_broker_knows_at_once_that_the_daemon_is_there(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker))
    site.log.run([1])
    with site.daemon as daemon:
        listener.wait_for_state("online")
        broker.stop()
        daemon.wait_until("told", lambda s: not s["mqtt"]["connected"])
        broker.start()
        with Listener(broker.port, "outrider/site/status", "late") as late:
            late.wait_for_state("online")
        status = daemon.wait_until("connected", lambda s: s["mqtt"]["connected"])
        assert status["mqtt"]["failure"] is None
        assert status["notes"] == []
        assert daemon.stop() == 0


def test_a_wrong_password_is_told_and_the_daemon_goes_on_until_it_is_mended(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    password = tmp_path / "password"
    password.write_text("wr0ng\n")
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker, password_file=str(password)))
    site.log.run([1, 2])
    with site.daemon as daemon:
        status = daemon.wait_until("told", lambda s: s["mqtt"]["failure"] is not None)
        assert "password" in status["mqtt"]["failure"]
        assert USERS["outrider"] not in str(status)
        assert any(note.startswith("not publishing: ") for note in status["notes"])
        assert site.wait_until_applied()["jobs"]["completed"] == 2
        assert site.metrics()["outrider_mqtt_connected"] == 0
        assert daemon.get("/readyz")["ready"]
        password.write_text(USERS["outrider"] + "\n")
        wait_until_all_is_heard(site, listener)
        assert daemon.status()["notes"] == []
        assert daemon.stop() == 0


def test_a_broker_that_drops_what_we_may_not_publish_is_found_out(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker, user="reader"))
    site.log.run([1, 2])
    with site.daemon as daemon:
        status = daemon.wait_until("told", lambda s: s["mqtt"]["failure"] is not None)
        assert "ACL" in status["mqtt"]["failure"]
        assert "reader" in status["mqtt"]["failure"]
        assert status["mqtt"]["published"] == {"decisions": 0, "evictions": 0}
        assert listener.heard == []
        site.configure(tables=LOG_TABLE + mqtt_table(broker))
        reload(site, "config_reloaded")
        wait_until_all_is_heard(site, listener)
        assert daemon.stop() == 0


def test_a_name_that_no_host_can_have_does_not_end_the_daemon(tmp_path: Path) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + '[mqtt]\nhost = "broker..example.org"\n')
    site.log.run([1, 2])
    with site.daemon as daemon:
        status = daemon.wait_until("told", lambda s: s["mqtt"]["failure"] is not None)
        assert not status["mqtt"]["connected"]
        assert site.wait_until_applied()["jobs"]["completed"] == 2
        assert daemon.stop() == 0


def test_tls_is_used_and_an_unknown_authority_refused(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    encrypted: dict[str, Any] = {"port": broker.tls_port, "tls": True}
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker, **encrypted))
    site.log.run([1])
    with site.daemon as daemon:
        status = daemon.wait_until("told", lambda s: s["mqtt"]["failure"] is not None)
        assert "certificate" in status["mqtt"]["failure"]
        trusting = mqtt_table(broker, **encrypted, ca_file=str(broker.ca_file))
        site.configure(tables=LOG_TABLE + trusting)
        reload(site, "config_reloaded")
        wait_until_all_is_heard(site, listener)
        assert daemon.stop() == 0


def test_a_reload_begins_and_ends_publishing_and_the_past_stays_untold(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1, 2])
    with site.daemon as daemon:
        site.wait_until_applied()
        status = daemon.wait_until(
            "recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"]
        )
        assert status["mqtt"] is None
        past = max(recorded(site))
        site.configure(tables=LOG_TABLE + mqtt_table(broker))
        reload(site, "config_reloaded")
        listener.wait_for_state("online")
        site.log.run([3])
        new = listener.wait_for("a decision", lambda: listener.on("decisions"))
        assert new.fields["job"] == f"{site.log.schedd}#3.0"
        assert min(listener.seqs("decisions")) > past

        heard = len(listener.on("status"))
        site.configure()
        reload(site, "config_reloaded")
        listener.wait_for_state("offline", after=heard)
        assert daemon.status()["mqtt"] is None
        site.log.run([4])
        site.wait_until_applied()
        heard = len(listener.on("status"))
        site.configure(head='mode = "observe"\n', tables=LOG_TABLE + mqtt_table(broker))
        reload(site, "config_reloaded")
        listener.wait_for_state("online", after=heard, mode="observe")
        fourth = f"{site.log.schedd}#4.0"
        listener.wait_for(  # what was decided while nobody was told comes then
            "job 4", lambda: (d for d in listener.on("decisions") if d.fields["job"] == fourth)
        )
        assert daemon.stop() == 0


def test_a_broker_that_hangs_holds_up_neither_the_work_nor_the_stop(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker))
    site.log.run([1])
    with site.daemon as daemon:
        listener.wait_for_state("online")
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            site.log.run(range(2, 500))
            assert site.wait_until_applied()["jobs"]["completed"] == 499
            daemon.wait_until("recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"])
            began_s = time.monotonic()
            assert daemon.stop() == 0  # within `STOP_WITHIN_S`
            print(f"stopped in {time.monotonic() - began_s:.1f} s")  # noqa: T201
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert "work_abandoned" not in site.log_text()
        daemon.start()
        wait_until_all_is_heard(site, listener)
        assert daemon.stop() == 0


def test_a_full_disk_is_told_and_nothing_is_lost_by_it(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        table = mqtt_table(broker, health_every_s=3600.0)
        site = SmallSite(tmp_path, state=disk / "state", tables=LOG_TABLE + table)
        site.log.run([1, 2])
        with site.daemon as daemon:
            listener.wait_for("good health", lambda: listener.on("health"))
            fill(disk)
            site.log.run(range(3, 2_000))
            bad = listener.wait_for(
                "bad health",
                lambda: (h for h in listener.on("health") if not h.fields["recording"]),
            )
            assert "full" in bad.fields["recording_failure"]
            relieve(disk)
            daemon.wait_until("recording again", lambda s: s["ledger"]["recording"])
            site.wait_until_applied()
            wait_until_all_is_heard(site, listener)
            listener.wait_for(
                "good health again",
                lambda: (h for h in listener.on("health")[2:] if h.fields["recording"]),
            )
            assert daemon.stop() == 0
