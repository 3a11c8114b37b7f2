"""Tests of the meaning of messages and of refusals, without a broker."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.api import ConfigurationError, MachineSpec, NamedEvent, build, events
from outrider.testing.harness import check_event
from outrider_adapters.mqtt import MqttAdapter, MqttSettings
from outrider_adapters.mqtt.deduplicator import Message
from outrider_adapters.mqtt.event_mapping import Meaning

NOW_S = 1_795_255_200.0
METERS = {
    "tele/+/SENSOR": {"watts": "ENERGY.Power", "machines": {"plug7": "lab-7"}},
    "shellies/+/relay/0/power": {},
}


def meaning(**more: Any) -> Meaning:
    return Meaning(build(MqttSettings, more, "test"))


def reported(
    topic: str, body: Any, by: Meaning | None = None, retained: bool = False, at_s: float = NOW_S
) -> list[NamedEvent]:
    payload = body if isinstance(body, bytes) else msgspec.json.encode(body)
    return (by or meaning()).events_of(Message(topic, payload, retained, at_s))


def refused(topic: str, body: Any, **settings: Any) -> str:
    asked = meaning(**settings)
    assert reported(topic, body, asked) == []
    ((reason, n),) = asked.rejected.items()
    assert n == 1
    assert topic[:20] in asked.complaint, "the person on call must learn which topic it was"
    return reason


def test_a_log_in_closes_a_machine_to_jobs() -> None:
    assert reported("outrider/in/owner/lab-7", {"present": True, "time": NOW_S - 1}) == [
        (NOW_S - 1, events.OWNER_CAME, "lab-7", None)
    ]


def test_a_log_out_opens_it_at_once_unless_told_otherwise() -> None:
    went = (NOW_S, events.OWNER_WENT, "lab-7", None)
    opened = (NOW_S, events.USABLE, "lab-7", None)
    assert reported("outrider/in/owner/lab-7", {"present": False}) == [went, opened]
    assert reported("outrider/in/owner/lab-7", {"present": False, "usable": False}) == [went]


def test_a_log_out_does_not_open_what_an_administrator_closed() -> None:
    first = meaning()
    reported("outrider/in/state/lab-7", {"state": "drained"}, first)
    again = meaning()
    again.restore(msgspec.json.decode(msgspec.json.encode(first.save())))
    for one in (first, again):
        went = reported("outrider/in/owner/lab-7", {"present": False}, one)
        assert [event[1] for event in went] == [events.OWNER_WENT]
        reported("outrider/in/state/lab-7", {"state": "usable", "time": NOW_S + 1}, one)
        went = reported("outrider/in/owner/lab-7", {"present": False, "time": NOW_S + 2}, one)
        assert [event[1] for event in went] == [events.OWNER_WENT, events.USABLE]


@pytest.mark.parametrize(
    ("word", "kind"),
    [
        ("usable", events.USABLE),
        ("drained", events.DRAINED),
        ("asleep", events.ASLEEP),
        ("awake", events.WOKEN),
        ("rebooted", events.REBOOTED),
        ("left", events.LEFT),
    ],
)
def test_every_word_of_a_state_is_an_event(word: str, kind: int) -> None:
    assert reported("outrider/in/state/lab-7", {"state": word}) == [(NOW_S, kind, "lab-7", None)]


@pytest.mark.parametrize(
    "time", [NOW_S, int(NOW_S), "2026-11-21T11:00:00+01:00", "2026-11-21T10:00:00Z"]
)
def test_times_are_unix_seconds_or_iso_8601_with_a_zone(time: float | str) -> None:
    body = {"watts": 63.2, "time": time}
    assert reported("outrider/in/power/lab-7", body, at_s=NOW_S + 3) == [
        (NOW_S, events.POWER, "lab-7", 63.2)
    ]


def test_watts_may_stand_alone() -> None:
    assert reported("outrider/in/power/lab-7", b"63.2") == [(NOW_S, events.POWER, "lab-7", 63.2)]
    assert reported("outrider/in/power/lab-7", b"63") == [(NOW_S, events.POWER, "lab-7", 63.0)]


def test_a_machine_tells_what_it_is() -> None:
    body = {"cluster": "library", "cpus": 4, "active_w": 57, "serial": "ignored"}
    assert reported("outrider/in/machine/lab-7", body, retained=True) == [
        (NOW_S, events.JOINED, "lab-7", MachineSpec(cluster="library", cpus=4, active_w=57.0))
    ]


def test_the_name_of_an_owner_is_never_kept() -> None:
    asked = meaning()
    body = {"present": True, "user": "jane.doe", "owner": {"name": "jane.doe"}}
    happened = reported("outrider/in/owner/lab-7", body, asked)
    reported("outrider/in/owner/lab-7", {"present": "jane.doe"}, asked)
    reported("outrider/in/state/lab-7", {"state": "jane.doe"}, asked)
    kept = repr((happened, asked.save(), asked.rejected, asked.ignored, asked.complaint))
    assert asked.rejected.total() == 2
    assert "jane" not in kept


def test_plugs_with_topics_of_their_own_are_read() -> None:
    asked = meaning(meters=METERS)
    body = {"Time": "2026-11-21T10:00:00", "ENERGY": {"Power": 63, "Today": 0.4}}
    assert reported("tele/plug7/SENSOR", body, asked) == [(NOW_S, events.POWER, "lab-7", 63.0)]
    assert reported("shellies/lab-9/relay/0/power", b"58.24", asked) == [
        (NOW_S, events.POWER, "lab-9", 58.24)
    ]
    assert not asked.rejected


def test_what_plugs_say_beside_is_ignored_and_counted() -> None:
    asked = meaning(meters=METERS)
    reported("tele/plug8/SENSOR", {"ENERGY": {"Power": 63}}, asked)
    reported("tele/plug7/SENSOR", {"Switch1": "ON"}, asked)
    reported("outrider/in/machine/lab-7", b"", asked)
    assert asked.ignored == {"meter_of_no_machine": 1, "without_watts": 1, "cleared": 1}
    assert not asked.rejected


@pytest.mark.parametrize(
    ("topic", "payload", "reason"),
    [
        ("outrider/in/owners/lab-7", b'{"present": true}', "unknown_topic"),
        ("elsewhere", b"1", "unknown_topic"),
        ("outrider/in/owner/", b'{"present": true}', "machine_name"),
        ("outrider/in/owner/a/b", b'{"present": true}', "machine_name"),
        ("outrider/in/owner/lab 7", b'{"present": true}', "machine_name"),
        ("outrider/in/owner/lab\n7", b'{"present": true}', "machine_name"),
        ("outrider/in/owner/" + "x" * 129, b'{"present": true}', "machine_name"),
        ("outrider/in/owner/lab-7", b"present", "not_json"),
        ("outrider/in/owner/lab-7", b'{"present": true', "not_json"),
        ("outrider/in/state/lab-7", b'{"state": "\xff\xfe"}', "not_json"),
        ("outrider/in/owner/lab-7", b"[" * 65536, "wrong_form"),
        ("outrider/in/owner/lab-7", b'{"present": true, "x": ' + b"[" * 60000, "not_json"),
        ("tele/plug7/SENSOR", b"[" * 60000, "not_json"),
        ("outrider/in/power/lab-7", b" " * 1_000_000 + b"1", "too_long"),
        ("outrider/in/owner/lab-7", b'{"present": "yes"}', "wrong_form"),
        ("outrider/in/owner/lab-7", b"{}", "wrong_form"),
        ("outrider/in/owner/lab-7", b'{"present": true, "time": "10:00"}', "wrong_form"),
        (
            "outrider/in/owner/lab-7",
            b'{"present": true, "time": "2026-11-21T10:00:00"}',
            "wrong_form",
        ),
        ("outrider/in/state/lab-7", b'{"state": "on fire"}', "unknown_state"),
        ("outrider/in/power/lab-7", b'{"watts": "63"}', "wrong_form"),
        ("outrider/in/power/lab-7", b"-1", "wrong_watts"),
        ("outrider/in/power/lab-7", b"4000000", "wrong_watts"),
        ("outrider/in/power/lab-7", b'{"watts": NaN}', "not_json"),
        ("outrider/in/power/lab-7", b'{"watts": 1e999}', "wrong_form"),
        ("tele/plug7/SENSOR", b'{"ENERGY": {"Power": [1, 2]}}', "wrong_watts"),
        ("tele/plug7/SENSOR", b'{"ENERGY": {"Power": true}}', "wrong_watts"),
        ("outrider/in/machine/lab-7", b'{"cpus": 0}', "wrong_form"),
        ("outrider/in/machine/lab-7", b'{"active_w": -5}', "wrong_form"),
    ],
)
def test_bad_messages_are_refused_by_name(topic: str, payload: bytes, reason: str) -> None:
    assert refused(topic, payload, meters=METERS) == reason


def test_clocks_that_are_wrong_are_not_believed() -> None:
    ahead = {"present": True, "time": NOW_S + 60}
    assert refused("outrider/in/owner/lab-7", ahead) == "from_the_future"
    milliseconds = {"present": True, "time": NOW_S * 1000}
    assert refused("outrider/in/owner/lab-7", milliseconds) == "from_the_future"
    never_set = {"present": True, "time": "2010-01-01T00:00:00Z"}
    assert refused("outrider/in/owner/lab-7", never_set) == "too_old"
    a_little = {"present": True, "time": NOW_S + 3}
    assert reported("outrider/in/owner/lab-7", a_little) != []


def test_what_came_while_our_own_clock_was_ahead_is_no_measure() -> None:
    """Test that a message without a time counts from its arrival, by a wrong clock."""
    asked = meaning()
    reported("outrider/in/owner/lab-7", {"present": True}, asked, at_s=NOW_S + 10 * 365 * 86_400)
    again = reported("outrider/in/owner/lab-7", {"present": False, "usable": False}, asked)
    assert [event[:2] for event in again] == [(NOW_S, events.OWNER_WENT)]
    assert not asked.ignored


def test_invented_machines_have_an_end() -> None:
    asked = meaning(max_machines=3)
    for number in range(1000):
        reported(f"outrider/in/power/invented-{number}", b"1", asked)
    assert asked.rejected == {"too_many_machines": 997}
    assert reported("outrider/in/power/invented-2", b"2", asked, at_s=NOW_S + 1) != []


def test_a_message_sent_again_counts_once() -> None:
    asked = meaning()
    sent = [{"watts": 60 + n, "time": NOW_S + n / 10} for n in range(20)]
    first = [event for body in sent for event in reported("outrider/in/power/lab-7", body, asked)]
    again = [event for body in sent for event in reported("outrider/in/power/lab-7", body, asked)]
    assert (len(first), len(again)) == (20, 0)
    assert asked.ignored == {"told_before": 20}


def test_two_different_messages_of_one_second_both_count() -> None:
    asked = meaning()
    for present in (True, False):
        body = {"present": present, "time": NOW_S}
        assert reported("outrider/in/owner/lab-7", body, asked) != []


def test_old_news_does_not_undo_new() -> None:
    asked = meaning()
    reported("outrider/in/owner/lab-7", {"present": True, "time": NOW_S}, asked)
    assert reported("outrider/in/owner/lab-7", {"present": False, "time": NOW_S - 60}, asked) == []
    assert asked.ignored == {"older_than_known": 1}


def test_a_retained_message_is_news_once() -> None:
    asked = meaning()
    body = {"state": "drained", "time": NOW_S - 30 * 86_400}
    (event,) = reported("outrider/in/state/lab-7", body, asked, retained=True)
    assert event == (NOW_S, events.DRAINED, "lab-7", None), "it tells what holds now"
    reported(
        "outrider/in/state/lab-7", {"state": "usable", "time": NOW_S + 5}, asked, at_s=NOW_S + 5
    )
    for stale in (body, {"state": "drained"}):
        assert reported("outrider/in/state/lab-7", stale, asked, True, NOW_S + 60) == []
    assert asked.ignored == {"told_before": 2}


TOPICS = st.sampled_from(
    [f"outrider/in/{what}/lab-7" for what in ("owner", "state", "power", "machine")]
    + ["tele/plug7/SENSOR", "shellies/lab-7/relay/0/power", "elsewhere"]
)
WORDS = st.sampled_from(["present", "state", "watts", "time", "ENERGY", "Power", "cpus", "usable"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(st.lists(st.tuples(TOPICS, VALUES.map(msgspec.json.encode) | st.binary()), max_size=8))
def test_whatever_comes_becomes_good_events_or_is_counted(body: list[tuple[str, bytes]]) -> None:
    asked = meaning(meters=METERS)
    sees = {events.KIND_NUMBERS[name] for name in MqttAdapter.sees}
    for topic, payload in body:
        before = asked.rejected.total() + asked.ignored.total()
        happened = reported(topic, payload, asked)
        for event in happened:
            check_event(event, sees)
        counted = asked.rejected.total() + asked.ignored.total() - before
        assert counted == (0 if happened else 1)


@pytest.mark.parametrize(
    ("given_settings", "part"),
    [
        ({"base": "/outrider"}, "base"),
        ({"base": "outrider/#"}, "base"),
        ({"meters": {"tele/SENSOR": {}}}, "one level that is + and none"),
        ({"meters": {"tele/+/+/SENSOR": {}}}, "one level that is + and none"),
        ({"meters": {"tele/+/#": {}}}, "one level that is + and none"),
        ({"meters": {"outrider/in/power/+": {}}}, "below base"),
        ({"meters": {"tele/+/SENSOR": {"watt": "x"}}}, "watt"),
        ({"password_file": "/etc/secret"}, "username is not"),
        ({"ca_file": "/etc/ca.pem"}, "tls = true"),
        ({"tls": True, "key_file": "/etc/key.pem"}, "cert_file is not"),
    ],
)
def test_settings_that_contradict_themselves_are_refused(
    given_settings: dict[str, Any], part: str
) -> None:
    with pytest.raises(ConfigurationError, match=r"lab\.toml") as caught:
        build(MqttSettings, given_settings, "lab.toml [adapters.mqtt]")
    assert part in str(caught.value)
