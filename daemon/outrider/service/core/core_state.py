"""The state of a core as plain data, for snapshots and reloads, and back."""

from math import inf
from typing import Any, Final

from outrider.engine import Engine, EventMerger
from outrider.journal.extras import decode_extra, encode_extra
from outrider.model.events import NamedEvent
from outrider.service.core.decision_log import JournalledDecisions

STATE_VERSION: Final = 5


def saved_state(
    merger: EventMerger, engine: Engine, decision_log: JournalledDecisions
) -> dict[str, Any]:
    """The whole state of a core, whose parts these are."""
    arrivals = merger.save()
    arrivals["waiting"] = [
        [t, n, label, [event[0], event[1], event[2], encode_extra(event[1], event[3])]]
        for t, n, label, event in arrivals["waiting"]
    ]
    return {
        "version": STATE_VERSION,
        "engine": engine.save(),
        "merger": arrivals,
        **decision_log.save(),
    }


def site_time_of(saved: dict[str, Any]) -> float:
    """The time at the site in what `saved_state` gave; minus infinity before any event."""
    now: float | None = saved["merger"]["now"]
    return -inf if now is None else now


def restore_state(
    saved: dict[str, Any], merger: EventMerger, engine: Engine, decision_log: JournalledDecisions
) -> list[str]:
    """Go on from what `saved_state` gave. Returns the names of policies that start afresh.

    A policy that had failed is among these: it gets another chance.

    Raises:
        ValueError: it was saved by another version of the state, or does not fit a policy.
    """
    if saved.get("version") != STATE_VERSION:
        raise ValueError(f"state version {saved.get('version')}, known: {STATE_VERSION}")
    merger.restore(saved["merger"], _event_of)
    decision_log.restore(saved)
    state = saved["engine"]
    sound = [[name, runner] for name, runner in state["runners"] if not runner["broken"]]
    return engine.restore({**state, "runners": sound})


def _event_of(plain: list[Any]) -> NamedEvent:
    time_s, kind, subject, extra = plain
    return time_s, kind, subject, decode_extra(kind, extra)
