"""Messages that wait: bounded in number and bytes, and the newest reading of a meter wins."""

from outrider.api import ReceivedMessage
from outrider_adapters.mqtt.adapter import _REPLACE_FROM_N, Arrival, WaitingMessages
from outrider_adapters.mqtt.deduplicator import Message
from outrider_adapters.mqtt.messages import MAX_PAYLOAD_BYTES


def is_reading(topic: str) -> bool:
    return topic.startswith("power/")


def arrival(topic: str, payload: bytes = b"1", heard_s: float = 0.0, qos: int = 0) -> Arrival:
    message = Message(topic, payload, False, heard_s)
    original = ReceivedMessage(topic, payload, False, 1, qos) if qos else None
    return Arrival(message, heard_s, None, original)


def test_without_a_crowd_every_reading_is_told() -> None:
    waiting = WaitingMessages(is_reading)
    for n in range(_REPLACE_FROM_N):
        assert waiting.add(arrival("power/m1", b"%d" % n))
    assert [a.message.payload for a in waiting.take(10**6)] == [
        b"%d" % n for n in range(_REPLACE_FROM_N)
    ]


def test_in_a_crowd_the_newest_reading_of_a_meter_takes_the_place_of_the_one_before() -> None:
    waiting = WaitingMessages(is_reading)
    for n in range(10_000):
        assert waiting.add(arrival(f"power/m{n % 600}", b"%d" % n, n))
    assert len(waiting) == 600
    assert waiting.oldest_heard_s == 0.0
    taken = waiting.take(10**6)
    newest = {f"power/m{n % 600}": b"%d" % n for n in range(10_000)}
    assert {a.message.topic: a.message.payload for a in taken} == newest
    assert waiting.take_counts() == (0, 10_000 - 600)
    assert waiting.add(arrival("power/m1"))  # what was taken is replaced no more
    assert len(waiting) == 1


def test_readings_of_invented_meters_leave_room_for_owners() -> None:
    waiting = WaitingMessages(is_reading, max_n=1_000)
    reported = [waiting.add(arrival(f"power/junk{n}")) for n in range(2_000)]
    assert sum(reported) == 500
    assert all(waiting.add(arrival(f"owner/m{n}")) for n in range(500))
    assert not waiting.add(arrival("owner/m1"))
    assert not waiting.add(arrival("owner/m2", qos=1))
    assert len(waiting) == 1_000
    assert waiting.take_counts() == (1_502, 0)


def test_bytes_are_bounded_too_and_given_back() -> None:
    waiting = WaitingMessages(is_reading, max_bytes=1_000_000)
    for _ in range(2):
        reported = sum(waiting.add(arrival("owner/m1", bytes(10_000))) for _ in range(200))
        assert reported == 99
        waiting.take(10**6)


def test_of_a_payload_that_is_too_long_only_so_much_is_kept() -> None:
    waiting = WaitingMessages(is_reading)
    waiting.add(arrival("owner/m1", bytes(200_000_000)))
    assert len(waiting.take(1)[0].message.payload) == MAX_PAYLOAD_BYTES + 1


def test_messages_of_qos_1_are_not_replaced() -> None:
    """Test that senders wait for an answer, and that the broker keeps later messages."""
    waiting = WaitingMessages(is_reading)
    for _ in range(_REPLACE_FROM_N + 100):
        assert waiting.add(arrival("power/m1", qos=1))
    assert len(waiting) == _REPLACE_FROM_N + 100
