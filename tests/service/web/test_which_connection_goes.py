"""Choice of the connection to close, by a clock of the test, without a network."""

import asyncio
import resource
import socket
from importlib import import_module
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.service.web.serve import (
    DESCRIPTORS_IN_RESERVE,
    MAX_CONNECTIONS,
    MIN_CONNECTIONS,
    Connections,
    max_connections,
)


class Transport(asyncio.Transport):
    """A fake asyncio transport with a given number of unread bytes."""

    def __init__(self, unread: int = 0, end: socket.socket | None = None) -> None:
        super().__init__({"socket": end})
        self.unread, self.is_aborted = unread, False

    def get_write_buffer_size(self) -> int:
        return self.unread

    def abort(self) -> None:
        self.is_aborted = True


class Site:
    """Connections, and the clock that they go by."""

    def __init__(self, **bounds: Any) -> None:
        self.now_s = 1000.0
        self.connections = Connections(
            asyncio.Protocol, max_unread_bytes=100, clock=lambda: self.now_s,
            **{"most": 3, "idle_s": 60.0, "unread_s": 10.0} | bounds,
        )  # fmt: skip
        self.transports: list[Transport] = []

    def connect(self, unread: int = 0, end: socket.socket | None = None) -> Any:
        connection = self.connections()
        self.transports.append(Transport(unread, end))
        connection.connection_made(self.transports[-1])
        return connection

    @property
    def ended(self) -> list[int]:
        """The numbers of the closed connections."""
        return [n for n, transport in enumerate(self.transports) if transport.is_aborted]


def test_one_too_many_ends_the_one_on_which_nothing_moved_for_longest() -> None:
    site = Site()
    first, _, _ = (site.connect() for _ in range(3))
    first.data_received(b"GET")
    site.connect()
    assert site.ended == [1]
    assert (len(site.connections), site.connections.ended["too_many"]) == (3, 1)


def test_one_that_has_asked_and_was_not_heard_yet_is_spared_if_another_has_not() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"GET / HTTP/1.1")
        site = Site()
        asked = site.connect(end=here)
        assert asked.has_asked()
        for _ in range(3):
            assert not site.connect().has_asked(), "it is no socket"
        assert site.ended == [1]
    assert not asked.has_asked(), "it is closed"


def test_where_all_have_asked_the_oldest_goes_all_the_same() -> None:
    here, there = socket.socketpair()
    with here, there:
        there.sendall(b"GET / HTTP/1.1")
        site = Site()
        for _ in range(4):
            site.connect(end=here)
        assert len(site.ended) == 1
        assert len(site.connections) == 3


@pytest.mark.parametrize(
    ("unread", "quiet_s", "why"),
    [(0, 59.9, None), (0, 60.0, "idle"), (1, 9.9, None), (1, 10.0, "unread"), (1, 61.0, "unread")],
)
def test_a_quiet_connection_goes_sooner_where_an_answer_waits_to_be_read(
    unread: int, quiet_s: float, why: str | None
) -> None:
    site = Site()
    site.connect(unread)
    site.now_s += quiet_s
    site.connections.sweep()
    assert site.connections.ended == {"too_many": 0, "idle": 0, "unread": 0} | (
        {} if why is None else {why: 1}
    )
    assert site.ended == ([] if why is None else [0])


def test_who_reads_a_byte_now_and_then_stays() -> None:
    site = Site()
    site.connect(90)
    for _ in range(20):
        site.now_s += 9.0
        site.transports[0].unread -= 1
        site.connections.sweep()
    assert site.ended == []
    site.now_s += 10.0
    site.connections.sweep()
    assert site.ended == [0]


@pytest.mark.parametrize(
    ("unread", "ended"),
    [((40, 60), []), ((40, 61), [1]), ((90, 60, 30), [0]), ((90, 80, 30), [0, 1]), ((101,), [0])],
)
def test_of_answers_that_nobody_reads_the_largest_are_thrown_away(
    unread: tuple[int, ...], ended: list[int]
) -> None:
    for at_once in (True, False):
        site = Site()
        made = [site.connect(n) for n in unread]
        if at_once:
            made[0].pause_writing()
        else:
            site.connections.sweep()
        assert site.ended == ended
        assert site.connections.ended["unread"] == len(ended)


def test_one_that_is_closed_or_moves_again_is_known_as_such() -> None:
    site = Site()
    gone, back = site.connect(), site.connect()
    gone.connection_lost(None)
    site.now_s += 59.0
    back.resume_writing()
    site.now_s += 1.0
    site.connections.sweep()
    assert (site.ended, list(site.connections)) == ([], [back])


def test_that_connections_were_ended_is_told_once_a_minute() -> None:
    site = Site(most=0)
    with capture_logs() as lines:
        for _ in range(3):
            site.connect()
        site.now_s += 60.0
        site.connect()
    assert [(line["reason"], line["ended"]["too_many"]) for line in lines] == [
        ("too_many", 1), ("too_many", 4),
    ]  # fmt: skip


async def test_a_fault_of_the_sweep_is_told_and_the_next_one_comes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the package has a function of the module's name
    monkeypatch.setattr(import_module("outrider.service.web.serve"), "SWEEP_EVERY_S", 0.01)
    site, swept = Site(), asyncio.Event()
    faults = [ZeroDivisionError("a figure")]

    def sweep() -> None:
        if faults:
            raise faults.pop()
        swept.set()

    monkeypatch.setattr(site.connections, "sweep", sweep)
    with capture_logs() as lines:
        async with site.connections.watched(), asyncio.timeout(10):
            await swept.wait()
    assert [line["event"] for line in lines] == ["connection_sweep_failed"]


@pytest.mark.parametrize(
    ("limit", "most"),
    [
        (resource.RLIM_INFINITY, MAX_CONNECTIONS), (1 << 20, MAX_CONNECTIONS),
        (DESCRIPTORS_IN_RESERVE + 100, 100), (DESCRIPTORS_IN_RESERVE, MIN_CONNECTIONS),
    ],
)  # fmt: skip
def test_there_are_as_many_as_the_limit_on_descriptors_leaves_room_for(
    limit: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (limit, limit))
    assert max_connections() == most
