"""The adapter of a real HTCondor pool: slots, queues, histories and event logs."""

import time
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import Meta, field

from outrider.api import Batch, PeerError
from outrider_adapters.htcondor.adapter import CondorAdapter
from outrider_adapters.htcondor.diagnosis import Finding, diagnosed
from outrider_adapters.htcondor.locating import event_log_of, located
from outrider_adapters.htcondor.pool_calls import Ad
from outrider_adapters.htcondor.pool_watch import PoolWatch
from outrider_adapters.htcondor.settings import WatchSettings
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.logtail.first_look import wrong_with


class HTCondorSettings(WatchSettings, frozen=True, kw_only=True):
    """Which pool, and what of it."""

    collector: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="Host, or host:port, of the collector. Unset: as CONDOR_CONFIG has it.",
            examples=["cm.example.org:9618"],
        ),
    ] = None
    access_points: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(
            description="Schedds whose jobs are watched, by name or pattern (as in a shell), as "
            "condor_status -schedd shows them. Empty: all that the collector knows.",
            examples=[["ap*.example.org"]],
        ),
    ] = ()
    event_logs: Annotated[
        dict[str, Annotated[str, Meta(min_length=1)]],
        Meta(
            description="Event log of each access point, by its name. One on this host that says "
            "where its log is need not be named. Without a log its queue and history are asked."
        ),
    ] = field(default_factory=dict)
    start_at: Annotated[
        Literal["now", "beginning"],
        Meta(
            description="What the first start makes of what was there before: now takes it as "
            "history, which builds state silently; beginning treats it as news."
        ),
    ] = "now"
    look_s: Annotated[
        float, Meta(ge=1, le=60, description="Seconds from one look at logs and slots to the next.")
    ] = 5.0


class HTCondorAdapter(CondorAdapter):
    """Watches a pool by calls that need the right to read, and by the event logs it may read.

    Nothing is changed in the pool. What is asked, and how often, is in the settings.

    Raises:
        PluginError: HTCondor's Python bindings are not installed.
    """

    name: ClassVar[str] = "htcondor"
    description: ClassVar[str] = "watches an HTCondor pool: slots, queues and event logs"
    api_version = 1
    settings_type: ClassVar[type[WatchSettings]] = HTCondorSettings

    def __init__(self, label: str, settings: HTCondorSettings) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._watch: PoolWatch | None = None

    @classmethod
    def check_source(cls, settings: Any) -> list[str]:
        """What is wrong with the event logs that the settings name, a sentence each."""
        logs = (_log(path, settings) for path in settings.event_logs.values())
        return [sentence for log in logs for sentence in wrong_with(log)]

    def diagnose(self) -> list[Finding]:
        """For ``outrider doctor``: who answers, and from where jobs are known."""
        try:
            calls, ads = located(self._settings.collector, self._settings.access_points)
        except PeerError as error:
            return [("collector", "fail", str(error), "start the pool, or mend the settings")]
        return list(diagnosed(calls, self._event_logs(ads), self._settings.queue_s))

    def begin(self, cursor: Any) -> None:
        """Find the pool, and begin at a cursor.

        Raises:
            PeerError: it cannot be found.
            ValueError: the cursor is none of this adapter's.
        """
        calls, ads = located(self._settings.collector, self._settings.access_points)
        start_now = self._settings.start_at == "now"
        watch = self._watch = PoolWatch(
            calls, self._event_logs(ads), self._settings, time.time, start_now
        )
        watch.start(cursor)

    def _event_logs(self, ads: Mapping[str, Ad]) -> dict[str, LogtailSettings]:
        """The event logs that can be read, by access point."""
        found = {name: event_log_of(ad) for name, ad in ads.items()}
        paths = {**found, **self._settings.event_logs}
        return {name: _log(path, self._settings) for name, path in paths.items() if path}

    def look(self) -> Batch:
        """What happened since the last look."""
        if self._watch is None:
            raise RuntimeError("look() before begin()")
        return self._watch.look()

    def pause_s(self, batch: Batch) -> float:
        """Seconds to the next look; none while history is read."""
        return 0.0 if batch.seen_until_s is None and batch.events else self._settings.look_s

    def end(self) -> None:
        """Close the logs."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None


def _log(path: str, settings: HTCondorSettings) -> LogtailSettings:
    """How the event log of an access point is read."""
    return LogtailSettings(paths=(path,), format="htcondor", start_at=settings.start_at)
