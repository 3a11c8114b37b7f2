"""Messages that reach a broker: the daemon's state, its decisions, and evictions."""

import time
from pathlib import Path

import pytest

from outrider import __version__
from outrider.model.reasons import RUN_TEXTS
from outrider.service.twin import starts_file
from outrider.service.twin.starts_file import OneMoreForecast, StartsFile, Wait
from tests.peers.mosquitto import Mosquitto
from tests.service.mqtt.listener import Heard, Listener
from tests.service.mqtt.publishing_site import (
    campus_site,
    mqtt_table,
    recorded,
    wait_until_all_is_heard,
)
from tests.service.running.small_site import LOG_TABLE, SmallSite
from tests.service.running.test_personal_vos import NAME, submitted, tell_of_one_more
from tests.service.running.test_pseudonyms import NAMES, submitted_by
from tests.service.running.test_what_plain_clients_see import USERS, Site

pytestmark = pytest.mark.mosquitto


def test_every_decision_comes_as_the_ledger_exports_it_and_says_would(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = campus_site(tmp_path, mqtt_table(broker, site="north"), speed=60_000.0)
    with site.daemon as daemon:
        wait_until_all_is_heard(site, listener, at_least=1_000)
        status = daemon.status()
        metrics = site.metrics()
        assert daemon.stop() == 0
    rows = recorded(site)
    decisions = {one.fields["seq"]: one.fields for one in listener.on("decisions")}
    evictions = {one.fields["seq"]: one.fields for one in listener.on("evictions")}
    assert len(decisions) > 500
    assert len(evictions) > 10
    clusters = {cluster["name"] for cluster in status["clusters"]}
    assert {eviction.pop("cluster") for eviction in evictions.values()} <= clusters
    texts = {eviction.pop("reason_text") for eviction in evictions.values()}
    assert texts <= set(RUN_TEXTS.values())
    assert decisions | evictions == rows
    in_order = listener.seqs("decisions", "evictions")
    assert in_order == sorted(in_order), "out of order"
    assert len(in_order) == len(set(in_order)), "told twice, though no link broke"
    assert {one.topic.rpartition("/")[0] for one in listener.heard} == {"outrider/north"}

    published = {"decisions": len(decisions), "evictions": len(evictions)}
    assert status["mqtt"]["published"] == published
    assert (status["mqtt"]["behind"], status["mqtt"]["lost"]) == (0, 0)
    assert metrics["outrider_mqtt_connected"] == 1
    for kind, n in published.items():
        assert metrics[f'outrider_mqtt_published_total{{kind="{kind}"}}'] == n


@pytest.mark.parametrize(
    ("head", "policies", "rows"),
    [
        ('mode = "observe"\n', "", 50),
        ("", "\n[policies.lowest_watts]\n[policies.fifo]\n", 1_000),
    ],
    ids=["observing", "without_a_learning_policy"],
)
def test_evictions_come_once_where_nobody_learns(
    tmp_path: Path, broker: Mosquitto, listener: Listener, head: str, policies: str, rows: int
) -> None:
    site = campus_site(tmp_path, mqtt_table(broker), 60_000.0, head=head, policies=policies)
    with site.daemon as daemon:
        wait_until_all_is_heard(site, listener, at_least=rows)
        status = daemon.status()
        assert daemon.stop() == 0
    assert bool(listener.on("decisions")) == bool(policies)
    assert len(listener.on("evictions")) == sum(status["evictions"].values()) > 10


def test_health_is_retained_and_fresh(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker))
    site.log.submit(1, 2)
    site.log.start(1, 7)

    def says(running: int, queued: int) -> list[Heard]:
        jobs = {"queued": queued, "running": running, "suspended": 0, "held": 0}
        return [one for one in listener.on("health") if one.fields["jobs"] == jobs]

    with site.daemon as daemon:
        listener.wait_for("the jobs", lambda: says(running=1, queued=1))
        site.log.start(2, 8)
        health = listener.wait_for("the start", lambda: says(running=2, queued=0)).fields
        with Listener(broker.port, "outrider/site/health", "late") as late:
            assert late.wait_for("what is retained", lambda: late.on("health")).retained
        assert daemon.stop() == 0
    assert health["adapters"]["log"]["up"] is True
    assert health["adapters"]["log"]["input_age_s"] < 60
    assert (health["stale"], health["recording"], health["recording_failure"]) == (
        False, True, None,
    )  # fmt: skip


def test_what_one_more_job_would_meet_is_retained_as_the_endpoint_tells_it(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker))
    site.log.submit(1)
    site.log.start(1, 7)
    site.log.submit(2)
    now_s = time.time()
    told = OneMoreForecast(
        vo="cms", job_class="batch", cpus=1, estimate_s=None, n=3, wait_s=Wait(0.0, 60.0, 600.0),
        utility=0.75,
    )  # fmt: skip
    file = StartsFile(asked_s=now_s, one_more=[told], one_more_asked_s=now_s)
    site.state.mkdir(mode=0o700)
    starts_file.write(site.state, file)

    def says() -> list[Heard]:
        heard = listener.on("utility")
        return [one for one in heard if (one.fields["one_more_job"] or {}).get("kinds")]

    with site.daemon as daemon:
        heard = listener.wait_for("what was said", says).fields
        asked = daemon.get("/api/v1/utility")
        with Listener(broker.port, "outrider/site/utility", "late") as late:
            assert late.wait_for("what is retained", lambda: late.on("utility")).retained
        assert daemon.stop() == 0
    assert abs(heard.pop("time_s") - time.time()) < 300.0
    assert heard.keys() == asked.keys()
    assert heard["one_more_job"] == asked["one_more_job"]
    waits = heard["one_more_job"]["kinds"][0]["wait_s"]
    assert waits == {"low": 0.0, "median": 60.0, "high": 600.0}


def test_a_vo_that_is_named_for_a_user_leaves_by_its_pseudonym(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker))
    site.log.raw(submitted())

    def says() -> list[Heard]:
        return [one for one in listener.on("utility") if one.fields["one_more_job"]["kinds"]]

    with site.daemon as daemon:
        daemon.wait_until("started", lambda s: s["jobs"]["running"] == 1)
        tell_of_one_more(site)
        [kind] = listener.wait_for("what was said", says).fields["one_more_job"]["kinds"]
        assert daemon.stop() == 0
    assert kind["vo"].startswith("u-")
    assert not [one for one in listener.heard if NAME in one.text]


def test_no_topic_names_a_user_whatever_users_write(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = Site(tmp_path, mqtt_table(broker))
    with site.daemon as daemon:
        site.ready()
        listener.wait_for("a decision", lambda: listener.on("decisions"))
        listener.wait_for(
            "figures for brokers",
            lambda: [one for one in listener.on("utility") if one.fields["one_more_job"]["kinds"]],
        )
        assert daemon.stop() == 0
    topics = {one.topic.rpartition("/")[2] for one in listener.heard}
    assert topics >= {"status", "health", "utility", "decisions"}
    texts = [one.text.casefold() for one in listener.heard]
    assert not [text for text in texts if any(user in text for user in USERS)]


def test_the_status_is_retained_and_follows_the_daemon(
    tmp_path: Path, broker: Mosquitto, listener: Listener
) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker))
    site.log.run([1])
    with site.daemon as daemon:
        online = listener.wait_for_state("online", mode="shadow", version=__version__)
        assert online.fields["since"].endswith("Z")
        heard = len(listener.on("status"))
        daemon.kill()
        will = listener.wait_for_state("offline", after=heard)
        assert will.fields["since"] is None
        with Listener(broker.port, "outrider/site/status", "late") as late:
            assert late.wait_for_state("offline").retained
        heard = len(listener.on("status"))
        daemon.start()
        listener.wait_for_state("online", after=heard)
        heard = len(listener.on("status"))
        assert daemon.stop() == 0
        assert listener.wait_for_state("offline", after=heard).fields["since"] is not None


def test_no_users_name_leaves(tmp_path: Path, broker: Mosquitto, listener: Listener) -> None:
    site = SmallSite(tmp_path, tables=LOG_TABLE + mqtt_table(broker))
    for job, name in enumerate(NAMES, 1):
        site.log.raw(submitted_by(job, name))
    with site.daemon as daemon:
        wait_until_all_is_heard(site, listener)
        listener.wait_for("health", lambda: listener.on("health"))
        assert daemon.status()["jobs"]["queued"] == len(NAMES)
        assert daemon.stop() == 0
    assert listener.on("decisions")
    for name in NAMES:
        assert not [one for one in listener.heard if name in one.text or name in one.topic]
