"""Topics and JSON payloads of the MQTT messages. Docs: ``docs/mqtt-publishing.md``."""

import datetime as dt
import time
from typing import Final

import msgspec

from outrider import __version__
from outrider.journal import OutcomeRecord
from outrider.model.decisions import DecisionRow
from outrider.model.reasons import reason_text, run_text
from outrider.service.core.core import Core
from outrider.service.core.user_privacy import Viewer, named_row
from outrider.service.shapes.site import Utility
from outrider.service.views.sentences import no_data
from outrider.service.views.status import job_counts

STATUS: Final = "status"
HEALTH: Final = "health"
UTILITY: Final = "utility"
DECISIONS: Final = "decisions"
EVICTIONS: Final = "evictions"
KINDS: Final = (DECISIONS, EVICTIONS)
"""Last topic parts of the messages that carry one row of the journal each."""

_JOB_STATES: Final = ("queued", "running", "suspended", "held")
_encode = msgspec.json.Encoder().encode


def presence(state: str, mode: str, since_s: float | None) -> bytes:
    """Return the message of `status`: version, mode, and whether the daemon is online.

    Args:
        state: ``online`` or ``offline``.
        mode: mode of the daemon.
        since_s: Unix seconds since when; None in the will, which the broker sends at any time.
    """
    since = None if since_s is None else _utc(since_s)
    return _encode({"state": state, "mode": mode, "version": __version__, "since": since})


def health(core: Core, recording_failure: str | None) -> bytes:
    """Return the message of `health`: whether input is fresh and decisions are recorded."""
    jobs, gaps = job_counts(core), no_data(core)
    stale_after_s = core.config.stale_after_s
    return _encode(
        {
            "time_s": time.time(),
            "mode": core.config.mode,
            "stale": core.input_age_s > stale_after_s or not all(_up(core)),
            "adapters": {
                label: {"up": source.up, "input_age_s": source.age_s}
                for label, source in core.sources.items()
            },
            "recording": recording_failure is None,
            "recording_failure": recording_failure,
            "jobs": {state: None if gaps else jobs[state] for state in _JOB_STATES},
            "no_data": gaps,
        }
    )


def utility(answer: Utility, names: Viewer) -> bytes:
    """Return the message of `utility`: the answer of GET /api/v1/utility with its time."""
    return _encode({"time_s": time.time(), **names.plain(answer)})


def _up(core: Core) -> list[bool]:
    return [source.up for source in core.sources.values()]


def row_kind(row: DecisionRow | OutcomeRecord) -> str:
    """Return the last part of the topic on which a row of the journal is published."""
    return DECISIONS if isinstance(row, DecisionRow) else EVICTIONS


def row_message(seq: int, row: DecisionRow | OutcomeRecord, core: Core, names: Viewer) -> bytes:
    """Return the message of a decision (as the journal exports it) or an eviction, with `seq`.

    The sequence number `seq` never repeats.
    """
    if isinstance(row, DecisionRow):
        shown = named_row(row.as_row(seq))
        texts = {"would": row.mode == "shadow", "reason_text": reason_text(row.reason)}
        return names.encode({**shown, **texts})
    return _encode(
        {
            "time_s": row.time_s,
            "seq": seq,
            "job": row.job,
            "machine": row.machine,
            "cluster": _cluster(core, row.machine),
            "reason": row.reason,
            "reason_text": run_text(row.reason),
            "run_s": row.run_s,
        }
    )


def _cluster(core: Core, machine: str | None) -> str | None:
    """Return the cluster of a machine; None if the machine is no longer known."""
    names = core.merger.normaliser.machine_names
    if machine not in names:
        return None
    return core.site.cluster_names[core.site.machine_cluster[names.index(machine)]]


def _utc(time_s: float) -> str:
    return dt.datetime.fromtimestamp(time_s, dt.UTC).isoformat(timespec="seconds")[:-6] + "Z"
