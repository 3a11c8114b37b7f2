"""Conformance suite of adapters: the tests that every adapter has to pass."""

import asyncio
import contextlib
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from math import isfinite
from typing import Any, Final

import msgspec

from outrider.api.adapter import Adapter, AdapterSettings, Batch, WaitingReason
from outrider.model.decisions import ACTIONS
from outrider.model.errors import PeerError
from outrider.model.events import KIND_NAMES, KIND_NUMBERS, SUBMITTED, TICK, NamedEvent
from outrider.model.jobs import JOB_STATE_NAMES
from outrider.model.machines import ClusterSpec, SiteHabits
from outrider.plugins.finding import ADAPTERS
from outrider.testing.conformance import (
    NotConforming,
    check_identity,
    check_levers,
    check_settings,
    expect,
    run_all_tests,
)
from outrider.testing.harness import AdapterHarness, check_event

# -- batch reader ----------------------------------------------------------------------------------
# Reading batches of an adapter within time limits, as the daemon's supervisor does.

_SETTLE_S: Final = 1.0
_LOOP_THREADS: Final = "asyncio_"  # of the loop's default executor, which `asyncio.to_thread` uses


class BatchReader:
    """Recorded batches of one call of `batches`, with the cursor after each.

    Enter the adapter before, and call `close` before its context is left.

    Attributes:
        batches: in order.
        events: of all batches.
        cursors: (number of events until then, cursor) if it differs from the previous one, as the
            journal would store it.
    """

    def __init__(self, adapter: Adapter, cursor: Any) -> None:
        self.batches: list[Batch] = []
        self.events: list[NamedEvent] = []
        self.cursors: list[tuple[int, Any]] = []
        self._source: AsyncIterator[Batch] = aiter(adapter.batches(cursor))
        self._pending: asyncio.Task[Batch] | None = None

    async def until(self, events_n: int, within_s: float) -> None:
        """Read until `events_n` events have come. Raises `NotConforming` if that takes too long."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + within_s
        while len(self.events) < events_n:
            left_s = end_s - loop.time()
            if left_s <= 0 or await self._next(left_s) is None:
                raise NotConforming(
                    f"{len(self.events)} of {events_n} events came within {within_s:g} s"
                )

    async def ages(
        self, for_s: float, enough: Callable[[list[float]], bool] | None = None
    ) -> list[float]:
        """Read for `for_s`, or until `enough`; return the ages of the batches, in order."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + for_s
        ages: list[float] = []
        while (left_s := end_s - loop.time()) > 0 and not (enough and enough(ages)):
            batch = await self._next(left_s)
            if batch is not None:
                ages.append(batch.age_s)
        return ages

    async def close(self) -> None:
        """Stop reading, even in the middle of a batch."""
        if self._pending is not None:
            self._pending.cancel()
            with contextlib.suppress(asyncio.CancelledError, StopAsyncIteration):
                await self._pending
            self._pending = None
        close = getattr(self._source, "aclose", None)
        if close is not None:
            await close()

    async def _next(self, within_s: float) -> Batch | None:
        if self._pending is None:
            self._pending = asyncio.ensure_future(anext(self._source))
        done, _ = await asyncio.wait({self._pending}, timeout=within_s)
        if not done:
            return None
        pending, self._pending = self._pending, None
        try:
            batch = pending.result()
        except StopAsyncIteration:
            raise NotConforming("batches() ended; expected batches without end") from None
        self._record(batch)
        return batch

    def _record(self, batch: Batch) -> None:
        expect(isinstance(batch, Batch), f"batches() must yield Batches: {batch!r}")
        self.batches.append(batch)
        self.events += batch.events
        try:
            stored = msgspec.json.decode(msgspec.json.encode(batch.cursor))
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise NotConforming(
                f"the cursor {batch.cursor!r} is not plain data: {error}"
            ) from error
        if not self.cursors or self.cursors[-1] != (len(self.events), stored):
            self.cursors.append((len(self.events), stored))


async def read_batches(
    harness: AdapterHarness, cursor: Any, events_n: int, then_s: float
) -> BatchReader:
    """Start an adapter at a cursor, read `events_n` events and for `then_s` more, and leave it."""
    async with harness.adapter() as adapter:
        reader = BatchReader(adapter, cursor)
        await reader.until(events_n, harness.within_s)
        await reader.ages(then_s)
        await reader.close()
    return reader


async def remaining_tasks(known: set[asyncio.Task[Any]]) -> set[str]:
    """Return the names of new tasks that do not end soon."""
    left = asyncio.all_tasks() - known
    if left:
        _, left = await asyncio.wait(left, timeout=_SETTLE_S)
    return {task.get_name() for task in left}


def remaining_threads(known: Iterable[threading.Thread]) -> set[str]:
    """Return the names of new threads, except those of the event loop."""
    names = {thread.name for thread in set(threading.enumerate()).difference(known)}
    return {name for name in names if not name.startswith(_LOOP_THREADS)}


# -- adapters --------------------------------------------------------------------------------------

_LEAVE_WITHIN_S: Final = 5.0
_MAX_QUERIES: Final = 5
_UNKNOWN_JOB: Final = "a job#of:unknown\x1b"

_MAX_STATE_WORD: Final = 40


class AdapterConformance:
    """Contract of every adapter, as tests. Subclass it, name it ``Test...``, and add a harness.

    ::

        class TestCsvWatch(AdapterConformance):
            def harness(self) -> AdapterHarness:
                return CsvWatchHarness()
    """

    def harness(self) -> AdapterHarness:
        """Return a new source, and control over it. Called once for each test."""
        raise NotImplementedError

    def test_it_says_what_it_is(self) -> None:
        """Class variables exist and have the right types."""

        async def ask(harness: AdapterHarness) -> None:
            adapter = harness.adapter()
            kind = type(adapter)
            check_identity(kind, ADAPTERS)
            known = set(KIND_NAMES) - {KIND_NAMES[TICK]}
            _expect_words("sees", kind.sees, known)
            expect(bool(kind.sees), "sees is empty: which events can it yield?")
            check_levers(kind.levers)
            for name in ("inferred", "own_clock"):
                expect(isinstance(getattr(kind, name), bool), f"{name} must be True or False")
            lateness_s = adapter.lateness_s
            expect(isfinite(lateness_s) and lateness_s >= 0, f"lateness_s is {lateness_s!r}")
            specs = [isinstance(spec, ClusterSpec) for spec in adapter.clusters()]
            expect(all(specs), "clusters() must return ClusterSpecs")
            expect(
                adapter.incumbent is None or isinstance(adapter.incumbent, str),
                f"incumbent is {adapter.incumbent!r}: expected a policy's name, or None",
            )
            expect(isinstance(adapter.habits, SiteHabits), "habits must be SiteHabits")
            _expect_words("state_words", tuple(adapter.state_words), set(JOB_STATE_NAMES))
            for word in adapter.state_words.values():
                fits = isinstance(word, str) and 0 < len(word) <= _MAX_STATE_WORD
                expect(fits, f"state_words contains {word!r}: expected 1 to 40 letters")

        self._run(ask)

    def test_every_setting_tells_its_unit_and_purpose(self) -> None:
        """Settings have units in their names, descriptions, and defaults that are allowed."""

        async def ask(harness: AdapterHarness) -> None:
            adapter = harness.adapter()
            check_settings(type(adapter).settings_type, AdapterSettings, harness.settings())

        self._run(ask)

    def test_events_are_of_the_kinds_and_shapes_of_the_contract(self) -> None:
        """Events have kinds within `sees`, names, finite times, and extras of the right type."""

        async def ask(harness: AdapterHarness) -> None:
            reader = await _read_all(harness)
            sees = {KIND_NUMBERS[name] for name in type(harness.adapter()).sees}
            for event in reader.events:
                check_event(event, sees)

        self._run(ask)

    def test_every_event_comes_once(self) -> None:
        """Every event comes exactly once."""

        async def ask(harness: AdapterHarness) -> None:
            expected_n = harness.append()
            expected_n += harness.append()
            reader = await read_batches(harness, None, expected_n, then_s=harness.quiet_within_s)
            got = len(reader.events)
            fits = got >= expected_n if harness.endless else got == expected_n
            expect(fits, f"{got} events came instead of {expected_n}")

        self._run(ask)

    def test_it_resumes_from_every_cursor(self) -> None:
        """A fresh adapter yields exactly the remaining events."""

        async def ask(harness: AdapterHarness) -> None:
            reader = await _read_all(harness, appends=3)
            places = {consumed_n for consumed_n, _ in reader.cursors}
            expect(len(places) > 1, "all events came in one batch: nothing to resume from")
            for consumed_n, cursor in reader.cursors:
                rest = reader.events[consumed_n:]
                again = await read_batches(harness, cursor, len(rest), then_s=0.0)
                got = again.events[: len(rest)] if harness.endless else again.events
                expect(
                    got == rest,
                    f"resumed after event {consumed_n} of {len(reader.events)}: "
                    f"{_difference(got, rest)}",
                )

        self._run(ask)

    def test_it_may_be_left_and_entered_again(self) -> None:
        """The same object resumes from the last stored cursor, as after an error in the daemon.

        Events after that cursor were never stored, and come again.
        """

        async def ask(harness: AdapterHarness) -> None:
            adapter = harness.adapter()
            expected_n = harness.append()
            async with adapter:
                reader = BatchReader(adapter, None)
                await reader.until(expected_n, harness.within_s)
                stored_n, stored = reader.cursors[-1]
                expected_n += harness.append()
                await reader.until(expected_n, harness.within_s)
                await reader.close()
            rest = reader.events[stored_n:]
            async with adapter:
                again = BatchReader(adapter, stored)
                await again.until(len(rest), harness.within_s)
                await again.close()
            got = again.events[: len(rest)] if harness.endless else again.events
            expect(got == rest, f"entered again: {_difference(got, rest)}")

        self._run(ask)

    def test_the_end_of_knowledge_moves_forward(self) -> None:
        """`seen_until_s` never decreases, and ages are at least 0."""

        async def ask(harness: AdapterHarness) -> None:
            reader = await _read_all(harness, appends=2)
            marks = [
                batch.seen_until_s for batch in reader.batches if batch.seen_until_s is not None
            ]
            expect(marks == sorted(marks), f"seen_until_s decreases: {marks}")
            ages = [batch.age_s for batch in reader.batches]
            expect(all(isfinite(age) and age >= 0 for age in ages), f"age_s among {ages}")

        self._run(ask)

    def test_a_quiet_source_gives_signs_of_life(self) -> None:
        """Batches without events continue to come while nothing happens."""

        async def ask(harness: AdapterHarness) -> None:
            harness.needs_silence()
            expected_n = harness.append()
            async with harness.adapter() as adapter:
                reader = BatchReader(adapter, None)
                await reader.until(expected_n, harness.within_s)
                signs = await reader.ages(2.0 * harness.quiet_within_s, enough=_two_or_more)
                await reader.close()
            within_s = 2.0 * harness.quiet_within_s
            expect(
                _two_or_more(signs),
                f"{len(signs)} batches, not 2, within {within_s:g} s of silence",
            )

        self._run(ask)

    def test_a_source_that_is_gone_only_grows_old(self) -> None:
        """An absent source causes no error; `age_s` grows; once it is back, all events come."""

        async def ask(harness: AdapterHarness) -> None:
            harness.needs_a_source_to_take_away()
            expected_n = harness.append()
            async with harness.adapter() as adapter:
                reader = BatchReader(adapter, None)
                await reader.until(expected_n, harness.within_s)
                harness.take_away()
                away = await reader.ages(2.0 * harness.quiet_within_s, enough=_grew)
                expect(_grew(away), f"age_s did not grow while the source was away: {away}")
                harness.bring_back()
                expected_n += harness.append()
                await reader.until(expected_n, harness.within_s)
                back = await reader.ages(
                    2.0 * harness.quiet_within_s,
                    enough=lambda ages: bool(ages) and ages[-1] < max(away),
                )
                await reader.close()
            expect(
                bool(back) and back[-1] < max(away),
                f"age_s did not fall when the source was back: {back} after {max(away):g}",
            )
            got = len(reader.events)
            expect(got == expected_n, f"{got} events came over the absence, not {expected_n}")

        self._run(ask)

    def test_it_says_why_a_job_waits_or_nothing(self) -> None:
        """`waiting_reason` answers in time, for known and unknown jobs, and batches continue."""

        async def ask(harness: AdapterHarness) -> None:
            expected_n = harness.append()
            async with harness.adapter() as adapter:
                reader = BatchReader(adapter, None)
                await reader.until(expected_n, harness.within_s)
                submitted = [event[2] for event in reader.events if event[1] == SUBMITTED]
                for job in [*submitted[-_MAX_QUERIES:], _UNKNOWN_JOB]:
                    answer = await _in_time(adapter.waiting_reason(job), harness.within_s)
                    is_one = answer is None or isinstance(answer, WaitingReason)
                    expect(
                        is_one, f"waiting_reason returned {answer!r}, not a WaitingReason or None"
                    )
                    foreign = job == _UNKNOWN_JOB and answer is not None
                    expect(not foreign, "waiting_reason answered for an unknown job; expected None")
                signs = await reader.ages(2.0 * harness.quiet_within_s, enough=bool)
                expect(bool(signs), "no batch came after a call of waiting_reason")
                await reader.close()

        self._run(ask)

    def test_leaving_it_leaves_nothing_behind(self) -> None:
        """No task and no thread outlives the context, even if it is left in mid-batch."""

        async def ask(harness: AdapterHarness) -> None:
            harness.append()
            tasks, threads = asyncio.all_tasks(), threading.enumerate()
            async with asyncio.timeout(harness.within_s + _LEAVE_WITHIN_S):
                async with harness.adapter() as adapter:
                    reader = BatchReader(adapter, None)
                    await reader.until(1, harness.within_s)
                    await reader.close()
            left = await remaining_tasks(tasks)
            expect(not left, f"tasks that outlive the adapter: {', '.join(sorted(left))}")
            left = remaining_threads(threads)
            expect(not left, f"threads that outlive the adapter: {', '.join(sorted(left))}")

        self._run(ask)

    def test_it_acts_only_through_levers_it_declares(self) -> None:
        """Actions are declared as `Lever` classes in `levers`, never as methods of the adapter."""

        async def ask(harness: AdapterHarness) -> None:
            kind = type(harness.adapter())
            undeclared = [
                name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name in ACTIONS
            ]
            expect(not undeclared, f"undeclared levers: {', '.join(undeclared)}")

        self._run(ask)

    def _run(self, ask: Callable[[AdapterHarness], Coroutine[Any, Any, None]]) -> None:
        harness = self.harness()
        try:
            asyncio.run(ask(harness))
        finally:
            harness.close()


def check_adapter(make_harness: Callable[[], AdapterHarness]) -> dict[str, str]:
    """Run all tests on an adapter.

    Args:
        make_harness: returns a new harness for each test.

    Returns:
        for each test, ``passed`` or why it does not apply.

    Raises:
        NotConforming: names every failed test, with the cause.
    """
    suite = AdapterConformance()
    vars(suite)["harness"] = make_harness
    return run_all_tests(suite)


async def _read_all(harness: AdapterHarness, appends: int = 1) -> BatchReader:
    """Append to the source several times and read all events."""
    reader, expected_n = None, 0
    async with harness.adapter() as adapter:
        reader = BatchReader(adapter, None)
        for _ in range(appends):
            expected_n += harness.append()
            await reader.until(expected_n, harness.within_s)
        await reader.close()
    expect(bool(reader.events), "no event came")
    return reader


async def _in_time(asked: Coroutine[Any, Any, Any], within_s: float) -> Any:
    """Return an answer; None if the adapter reports that its peer does not answer."""
    try:
        async with asyncio.timeout(within_s):
            return await asked
    except PeerError:
        return None
    except TimeoutError:
        raise NotConforming(f"waiting_reason did not answer within {within_s:g} s") from None


def _two_or_more(ages: list[float]) -> bool:
    return len(ages) >= 2


def _grew(ages: list[float]) -> bool:
    return len(ages) >= 2 and ages[-1] > max(0.0, ages[0])


def _expect_words(name: str, words: object, known: set[str]) -> None:
    expect(isinstance(words, tuple), f"{name} must be a tuple of words: {words!r}")
    strange = [word for word in words if word not in known] if isinstance(words, tuple) else []
    expect(not strange, f"{name} contains {strange!r}; known: {', '.join(sorted(known))}")


def _difference(got: list[Any], wanted: list[Any]) -> str:
    for number, (one, other) in enumerate(zip(got, wanted, strict=False), 1):
        if one != other:
            return f"event {number} is {one!r} instead of {other!r}"
    return f"{len(got)} events came instead of {len(wanted)}"
