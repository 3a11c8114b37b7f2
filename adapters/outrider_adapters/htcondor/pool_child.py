"""The child's end of `outrider_adapters.htcondor.pool_process`: asks the pool, and answers."""

import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from outrider.api import Batch, OutriderError, PeerError, WaitingReason
from outrider_adapters.htcondor.bindings import HTCondorException
from outrider_adapters.htcondor.diagnosis import Finding, diagnosed
from outrider_adapters.htcondor.lease_attributes import LeaseTerms, Wanted
from outrider_adapters.htcondor.lease_edits import LeaseEdits
from outrider_adapters.htcondor.lease_proof import proved
from outrider_adapters.htcondor.lease_setup import lease_finding
from outrider_adapters.htcondor.locating import (
    LocatedSchedd,
    answer_within,
    event_logs_of,
    located,
    setting_of,
)
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.htcondor.pool_process import (
    ATTRIBUTES,
    BEGIN,
    DIAGNOSE,
    HOSTS_AND_LOGS,
    LEASE,
    LOOK,
    PROVE,
    RELEASE,
    RELEASE_ALL,
    SAME_CURSOR,
    WHY,
)
from outrider_adapters.htcondor.pool_watch import PoolWatch
from outrider_adapters.htcondor.questions import ask_why
from outrider_adapters.htcondor.real_pool_settings import HTCondorSettings
from outrider_adapters.htcondor.service_needs import HostsAndLogs, hosts_and_logs
from outrider_adapters.htcondor.site_attributes import site_attributes
from outrider_adapters.htcondor.slots import WHOLE_SLOTS


class _Pool:
    """The pool of an adapter, found when it is first needed.

    Args:
        settings: of the adapter.
    """

    def __init__(self, settings: HTCondorSettings) -> None:
        self._settings = settings
        self._watched: tuple[PoolWatch, PoolCalls] | None = None
        self._edits: LeaseEdits | None = None
        self._cursor: Any = None

    def begin(self, cursor: Any) -> None:
        settings = self._settings
        calls, ads = located(settings.collector, settings.access_points)
        logs = event_logs_of(ads, settings)
        starts_now = settings.start_at == "now"
        watch = PoolWatch(calls, logs, settings, time.time, starts_now, time.sleep)
        self._watched = watch, calls
        watch.start(cursor)

    def look(self, _: None) -> Batch:
        if self._watched is None:
            raise RuntimeError("a look before the beginning")
        batch = self._watched[0].look()
        if batch.cursor is self._cursor:
            return msgspec.structs.replace(batch, cursor=SAME_CURSOR)
        self._cursor = batch.cursor
        return batch

    def why(self, job: str) -> WaitingReason | None:
        if self._watched is None:
            raise PeerError("the pool has not been found yet")
        return ask_why(*self._watched, job)

    def lease(self, asked: tuple[LeaseTerms, Mapping[str, Wanted]]) -> dict[str, str]:
        terms, wanted = asked
        return self._edits_on(terms).apply(wanted)

    def release(self, asked: tuple[LeaseTerms, Sequence[str]]) -> dict[str, str]:
        terms, jobs = asked
        return self._edits_on(terms).withdraw(jobs)

    def release_all(self, terms: LeaseTerms) -> int:
        return self._edits_on(terms).withdraw_all()

    def prove(self, terms: LeaseTerms) -> list[Finding]:
        settings = self._settings
        calls, ads = located(settings.collector, settings.access_points)
        edits = LeaseEdits(calls, terms, time.time)
        return [
            proved(point, LocatedSchedd(None, point.name, ads[point.name]), edits, terms)
            for point in calls.access_points
        ]

    def diagnose(self, _: None) -> list[Finding]:
        settings = self._settings
        calls, ads = located(settings.collector, settings.access_points)
        found = list(diagnosed(calls, event_logs_of(ads, settings), settings.queue_s))
        return found + [
            lease_finding(point, setting_of(ads[point.name])) for point in calls.access_points
        ]

    def attributes(self, _: None) -> dict[str, dict[str, str]]:
        calls, _ads = located(self._settings.collector, self._settings.access_points)
        try:
            return site_attributes(calls.collector.query(calls.slot_ads, WHOLE_SLOTS, []))
        except HTCondorException as error:
            raise PeerError(f"the collector does not answer: {error}") from error

    def hosts_and_logs(self, _: None) -> HostsAndLogs:
        return hosts_and_logs(self._settings)

    def _edits_on(self, terms: LeaseTerms) -> LeaseEdits:
        if self._edits is None:
            calls, _ = located(self._settings.collector, self._settings.access_points)
            self._edits = LeaseEdits(calls, terms, time.time)
        return self._edits


def main() -> None:
    """Answer until the parent hangs up."""
    connection = Connection(int(sys.argv[1]))
    settings: HTCondorSettings = connection.recv()
    answer_within(settings.answer_within_s)
    pool = _Pool(settings)
    answers: Final[dict[str, Callable[[Any], Any]]] = {
        BEGIN: pool.begin,
        LOOK: pool.look,
        WHY: pool.why,
        LEASE: pool.lease,
        RELEASE: pool.release,
        RELEASE_ALL: pool.release_all,
        PROVE: pool.prove,
        DIAGNOSE: pool.diagnose,
        ATTRIBUTES: pool.attributes,
        HOSTS_AND_LOGS: pool.hosts_and_logs,
    }
    while True:
        try:
            question, argument = connection.recv()
        except (EOFError, OSError):
            return
        answer, failure = None, None
        try:
            answer = answers[question](argument)
        except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
            expected = isinstance(error, OutriderError)
            kind = PeerError.__name__ if expected else type(error).__name__
            failure = (kind, str(error), traceback.format_exc())
        try:
            connection.send((answer, failure))
        except OSError:
            return


if __name__ == "__main__":
    main()
