"""The MQTT publisher: one task that follows the journal and sends its rows to a broker.

Its place in the journal advances when the broker has confirmed a row (QoS 1), and is stored in the
journal. When a connection breaks, the place goes back by some seconds, because a broker confirms
before it saves. So nothing is lost while the broker or the daemon is down, and a row that is sent
twice carries the same sequence number.
"""

import asyncio
import contextlib
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import structlog

from outrider.api.broker import backoff, connected
from outrider.journal import Entry, Journal, OutcomeRecord
from outrider.model.decisions import COMPLETED_RUN, DecisionRow
from outrider.model.errors import LedgerError, OutriderError, PeerError
from outrider.service.config.declarations import Config
from outrider.service.config.optional_tables import PublishSettings
from outrider.service.core.core import Core
from outrider.service.core.user_privacy import Viewer
from outrider.service.journal.recording import Recording
from outrider.service.mqtt import messages
from outrider.service.mqtt.messages import (
    HEALTH,
    KINDS,
    STATUS,
    UTILITY,
    health,
    presence,
    row_kind,
    row_message,
)
from outrider.service.shapes.site import Utility

if TYPE_CHECKING:
    import aiomqtt


# -- feed ------------------------------------------------------------------------------------------
# The rows of the journal that are published: decisions and evictions, by sequence number.

PIECE_ROWS: Final = 100
"""Rows read, sent and confirmed together; a lost connection may send them twice."""

Numbered: TypeAlias = tuple[int, DecisionRow | OutcomeRecord]


class Piece(NamedTuple):
    """A range of rows of the journal.

    Attributes:
        rows: its decisions and evictions with their sequence numbers, ascending.
        until: the sequence number up to which these rows are complete.
        lost: sequence numbers of the range that retention removed before they were read.
    """

    rows: list[Numbered]
    until: int
    lost: int


def read_piece(path: Path, after: int) -> Piece:
    """Read the rows after a sequence number, at most `PIECE_ROWS` decisions. Takes milliseconds.

    Raises:
        LedgerError: the journal cannot be read.
    """
    with Journal(path, read_only=True) as journal:
        until = journal.last_seq()  # first: rows recorded from now on belong to the next piece
        lost = max(0, journal.pruned_seq() - after)
        decisions = list(journal.decisions(after, PIECE_ROWS))
        # one row earlier: it may record the same eviction as the first row that follows
        outcomes = list(islice(journal.outcomes(after - 1), PIECE_ROWS))
    for rows in (decisions, outcomes):
        if len(rows) == PIECE_ROWS:
            until = min(until, rows[-1][0])
    found: list[Numbered] = [*decisions, *_evictions(outcomes)]
    rows_within = [row for row in found if after < row[0] <= until]
    return Piece(sorted(rows_within, key=lambda row: row[0]), until, lost)


def _evictions(outcomes: Iterable[tuple[int, OutcomeRecord]]) -> Iterator[Numbered]:
    """Yield each wasted run once: the journal has one row per learning policy, in sequence."""
    before = None
    for seq, outcome in outcomes:
        run = (outcome.time_s, outcome.job, outcome.machine, outcome.run_s, outcome.ending)
        wasted = outcome.ending != COMPLETED_RUN and outcome.machine is not None
        if wasted and run != before:
            yield seq, outcome
        before = run


# -- publisher -------------------------------------------------------------------------------------

_POLL_S: Final = 0.2
_UNREADABLE_S: Final = 2.0
_ECHO_WITHIN_S: Final = 5.0
_GOODBYE_S: Final = 0.5

log = structlog.get_logger()


class Publisher:
    """Publisher of a daemon's records, while its configuration has ``[mqtt]``.

    Args:
        recording: the journal, read behind its writer.
        core: returns the current core.
        utility: returns the current answer of GET /api/v1/utility; None: it is not published.
    """

    def __init__(
        self,
        recording: Recording,
        core: Callable[[], Core],
        utility: Callable[[], Utility] | None = None,
    ) -> None:
        self._recording = recording
        self._core = core
        self._utility = utility
        self._rng = random.Random()
        self._began_s = time.time()
        self._settings: PublishSettings | None = None
        self._mode = ""
        self._changed = asyncio.Event()
        self._connected = False
        self._failure: str | None = None
        self._place = Place(recording)

    def follow(self, config: Config) -> None:
        """Use the ``[mqtt]`` table and the mode of a configuration from now on.

        The first rows published are those recorded after publishing was first configured.
        """
        if (config.mqtt, config.mode) != (self._settings, self._mode):
            self._settings, self._mode = config.mqtt, config.mode
            self._changed.set()

    def figures(self) -> dict[str, Any] | None:
        """Return the publisher's state for status and metrics; None without ``[mqtt]``."""
        if self._settings is None:
            return None
        return {
            "broker": self._settings.address,
            "topic": self._settings.base,
            "connected": self._connected,
            "failure": self._failure,
            **self._place.figures(),
        }

    async def run(self) -> None:
        """Publish until cancelled; retry an unreachable broker with increasing pauses."""
        pauses = backoff(self._rng)
        while True:
            self._changed.clear()
            settings = self._settings
            if settings is None:
                self._failure = None
                await self._changed.wait()
                continue
            await self._place.begin()
            try:
                await self._converse(settings)
                pauses = backoff(self._rng)
            except Exception as error:  # publishing must never end the daemon
                if (task := asyncio.current_task()) is not None and task.cancelling():
                    raise asyncio.CancelledError from error  # connection lost during the farewell
                if self._connected:
                    pauses = backoff(self._rng)
                    await self._place.go_back()
                pause_s = next(pauses)
                why = str(error)
                if not isinstance(error, OutriderError):
                    log.exception("publisher_failed")
                    why = f"{type(error).__name__}: {error}"
                self._connected, self._failure = False, why
                log.warning("broker_disconnected", error=why, again_in_s=round(pause_s, 1))
                try:
                    async with asyncio.timeout(pause_s):  # `wait_for` may swallow a cancellation
                        await self._changed.wait()
                except TimeoutError:
                    continue

    # -- one connection -----------------------------------------------------------------------

    async def _converse(self, settings: PublishSettings) -> None:
        """Connect and publish until the settings change; raises `PeerError`."""
        import aiomqtt

        topic, mode = f"{settings.base}/{STATUS}", self._mode
        will = aiomqtt.Will(topic, presence("offline", mode, None), qos=1, retain=True)
        async with connected(settings, f"{settings.site}-publisher", will=will) as client:
            online = presence("online", mode, self._began_s)
            echo = asyncio.Event()
            link = asyncio.create_task(_listen(client, online, echo), name="listen-to-broker")
            try:
                await self._introduce(client, settings, online, echo)
                self._connected, self._failure = True, None
                log.info("broker_connected", broker=settings.address, topic=settings.base)
                await self._follow_journal(client, settings, link)
            finally:
                client.timeout = _GOODBYE_S  # a broker that hangs must not delay the stop
                try:
                    if not link.done():  # `online` may be published, though not received back yet
                        farewell = presence("offline", mode, time.time())
                        with contextlib.suppress(aiomqtt.MqttError):  # keep the first error
                            await client.publish(topic, farewell, qos=1, retain=True)
                finally:
                    link.cancel()
                    await asyncio.gather(link, return_exceptions=True)
        self._connected = False
        log.info("broker_closed", broker=settings.address)

    async def _introduce(
        self, client: "aiomqtt.Client", settings: PublishSettings, online: bytes,
        echo: asyncio.Event,
    ) -> None:  # fmt: skip
        """Publish `online` and wait until it is received back: nothing else shows a refusal.

        MQTT 3.1.1 has no answer for "you may not publish here": a broker confirms the message and
        drops it. Without this check the whole journal could be published and never delivered.
        """
        topic = f"{settings.base}/{STATUS}"
        await client.subscribe(topic, qos=1)
        await client.publish(topic, online, qos=1, retain=True)
        try:
            async with asyncio.timeout(_ECHO_WITHIN_S):
                await echo.wait()
        except TimeoutError as error:
            who = settings.username or "clients without a user name"
            raise PeerError(
                f"MQTT broker {settings.address}: accepts messages to {topic} but does not "
                f"deliver them; expected an ACL that lets {who} write and read "
                f"{settings.base}/#"
            ) from error

    async def _follow_journal(
        self, client: "aiomqtt.Client", settings: PublishSettings, link: "asyncio.Task[None]"
    ) -> None:
        """Publish new rows, and periodically the daemon's health, until the settings change."""
        health_due_s, sent_failure = 0.0, None
        clock = asyncio.get_running_loop().time
        while not self._changed.is_set():
            failure = self._recording.failure
            if clock() >= health_due_s or failure != sent_failure:
                health_due_s, sent_failure = clock() + settings.health_every_s, failure
                message = health(self._core(), failure)
                await client.publish(f"{settings.base}/{HEALTH}", message, qos=1, retain=True)
                if self._utility is not None:
                    message = messages.utility(self._utility(), self._names())
                    await client.publish(f"{settings.base}/{UTILITY}", message, qos=1, retain=True)
            pause_s = await self._publish_piece(client, settings)
            await asyncio.wait({link}, timeout=pause_s)
            if link.done():
                link.result()  # raises the error that ended the connection

    async def _publish_piece(self, client: "aiomqtt.Client", settings: PublishSettings) -> float:
        """Publish the next rows, if there are any; return the seconds to pause."""
        place = self._place
        if place.seq is None or not place.behind:
            return _POLL_S
        try:
            piece = await asyncio.to_thread(read_piece, self._recording.path, place.seq)
        except LedgerError as error:
            if self._failure is None:
                log.error("publishing_failed", error=str(error))
            self._failure = str(error)
            return _UNREADABLE_S
        self._failure = None
        if piece.lost:
            place.lost += piece.lost
            log.error("unpublished_rows_lost", at_most=piece.lost, hint="pruned by retention")
        await self._publish_rows(client, settings, piece.rows)
        await place.move_to(piece.until, worth_keeping=bool(piece.rows))
        return len(piece.rows) / settings.most_per_s if piece.rows else _POLL_S

    def _names(self) -> Viewer:
        core = self._core()
        shown = core.config.show_users == "everybody"  # a topic's readers are not authenticated
        return Viewer(self._recording.pseudonyms, core.known_users, shown)

    async def _publish_rows(
        self, client: "aiomqtt.Client", settings: PublishSettings, rows: list[Numbered]
    ) -> None:
        """Send rows together, in order; advance the place up to the last confirmed row."""
        core, names = self._core(), self._names()
        client.pending_calls_threshold = len(rows)
        sent = [
            client.publish(
                f"{settings.base}/{row_kind(row)}", row_message(seq, row, core, names), qos=1
            )
            for seq, row in rows
        ]
        results = await asyncio.gather(*sent, return_exceptions=True)
        for (seq, row), result in zip(rows, results, strict=True):
            if isinstance(result, BaseException):
                raise result
            self._place.seq = seq
            self._place.published[row_kind(row)] += 1


async def _listen(client: "aiomqtt.Client", awaited: bytes, received: asyncio.Event) -> None:
    """Read until the connection is lost (raises); set `received` when `awaited` is received."""
    async for message in client.messages:
        if message.payload == awaited and not message.retain:  # a retained one is an old one
            received.set()


# -- place -----------------------------------------------------------------------------------------
# The publisher's progress in the journal, stored in the journal itself.
#
# So it always matches the journal: it goes back with it when a power failure loses its last rows,
# and starts at the present with a new one.

PLACE_KEY: Final = "mqtt"
DOUBT_S: Final = 5.0
"""Seconds before a disconnect in which confirmed rows may not have been saved or delivered."""

_SAVE_EVERY: Final = 10_000
"""Sequence numbers after which the place is stored even if no row of them was published."""


class Place:
    """The publisher's place in the journal, and its counts.

    Args:
        recording: the journal.
        clock: seconds, monotonic.

    Attributes:
        seq: everything up to this sequence number is published; None before the first time.
        published: rows that the broker confirmed, by kind; one that is sent again counts again.
        lost: sequence numbers that retention removed before they were read.
    """

    def __init__(self, recording: Recording, clock: Callable[[], float] = time.monotonic) -> None:
        self._recording = recording
        self._clock = clock
        with Journal(recording.path, read_only=True) as journal:
            kept = journal.meta(PLACE_KEY, {"seq": None, "published": {}, "lost": 0})
        self.seq: int | None = kept["seq"]
        self.published = Counter(kept["published"])
        self.lost: int = kept["lost"]
        self._kept_seq = self.seq or 0
        self._reached = self.seq
        self._steps = deque[tuple[float, int]]()
        """Times of the last confirmations, each with the place before its rows."""

    @property
    def behind(self) -> int:
        """Number of recorded sequence numbers that are not read yet."""
        return 0 if self.seq is None else max(0, self._recording.last_seq - self.seq)

    async def begin(self) -> None:
        """Set the place to the end of the journal, if it was never set."""
        if self.seq is None:
            await self.move_to(self._recording.last_seq, worth_keeping=True)

    async def move_to(self, seq: int, worth_keeping: bool) -> None:
        """Advance to a sequence number, and store the place if that is worth a row.

        While the disk is full nothing is stored; a later call stores it.
        """
        now_s = self._clock()
        while self._steps and self._steps[0][0] < now_s - DOUBT_S:
            self._steps.popleft()
        if worth_keeping and self._reached is not None:
            self._steps.append((now_s, self._reached))
        self._reached = seq
        await self._set(seq, worth_keeping or seq - self._kept_seq > _SAVE_EVERY)

    async def _set(self, seq: int, worth_keeping: bool) -> None:
        self.seq = seq
        if worth_keeping and self._recording.failure is None:
            self._kept_seq = seq
            kept = {"seq": seq, "published": dict(self.published), "lost": self.lost}
            await self._recording.submit(Entry(meta={PLACE_KEY: kept}))

    async def go_back(self) -> None:
        """Go back after a disconnect, to send the rows confirmed in the last seconds again.

        A broker that is killed loses messages that it confirmed but had not saved. The place is
        stored, because the daemon may be stopped before the broker is back.
        """
        since_s = self._clock() - DOUBT_S
        unsure = (seq for at_s, seq in self._steps if at_s >= since_s)
        first = next(unsure, self._reached)
        self._steps.clear()
        if first is not None:
            self._reached = first
            await self._set(first, worth_keeping=first != self._kept_seq)

    def figures(self) -> dict[str, Any]:
        """Return the place and the counts for status and metrics."""
        return {
            "published": {kind: self.published[kind] for kind in KINDS},
            "last_seq": self._recording.last_seq if self.seq is None else self.seq,
            "behind": self.behind,
            "lost": self.lost,
        }
