"""Contents of messages; `test_what_is_published` tests what reaches a broker."""

import json
from typing import Any

from outrider import __version__
from outrider.api import Batch
from outrider.journal import OutcomeRecord
from outrider.model.reasons import reason_text
from outrider.service.core.user_privacy import KnownUsers, Pseudonyms, Viewer
from outrider.service.mqtt.messages import health, presence, row_kind, row_message
from tests.fixtures.small_figures import small_figures
from tests.journal.samples import decision


def names(shown: bool = True) -> Viewer:
    return Viewer(Pseudonyms(b"k" * 32), KnownUsers(), shown)


def told(message: bytes) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(message)
    return said


def test_the_status_says_since_when_the_daemon_is_there_or_that_nobody_knows() -> None:
    assert told(presence("online", "shadow", 1_700_000_000.9)) == {
        "state": "online", "mode": "shadow", "version": __version__,
        "since": "2023-11-14T22:13:20Z",
    }  # fmt: skip
    assert told(presence("offline", "observe", None))["since"] is None


def test_health_is_stale_when_one_source_is_down_or_input_is_old() -> None:
    core = small_figures()
    for source in core.sources.values():
        source.note_batch(Batch(events=[], cursor=None, age_s=2.0), core.config.stale_after_s)
    said = told(health(core, None))
    said.pop("time_s")
    assert said == {
        "mode": "shadow", "stale": False, "recording": True, "recording_failure": None,
        "adapters": {label: {"up": True, "input_age_s": 2.0} for label in ("log", "meters")},
        "jobs": {"queued": 2, "running": 1, "suspended": 0, "held": 0}, "no_data": [],
    }  # fmt: skip
    core.sources["meters"].lose("it is gone")
    said = told(health(core, "the disk is full"))
    assert said["stale"] is True
    assert (said["adapters"]["log"]["up"], said["adapters"]["meters"]["up"]) == (True, False)
    assert (said["recording"], said["recording_failure"]) == (False, "the disk is full")
    assert set(said["jobs"].values()) == {None}, "a program would take old values for new ones"
    [gap] = said["no_data"]
    assert (gap["adapter"], gap["why"]) == ("meters", "it is gone")
    assert gap["text"].startswith("No data since ")


def test_a_decision_is_as_the_ledger_exports_it_and_says_whether_it_only_would() -> None:
    row = decision(10.0, "1.0")
    assert row_kind(row) == "decisions"
    said = told(row_message(7, row, small_figures(), names()))
    text = reason_text(row.reason)
    exported = json.loads(json.dumps(row.as_row(7)))
    assert said == {**exported, "would": True, "reason_text": text}
    acted = decision(10.0, "1.0", mode="active")
    assert told(row_message(8, acted, small_figures(), names()))["would"] is False


def test_an_eviction_says_where_it_was_as_long_as_the_machine_is_known() -> None:
    row = OutcomeRecord(54.0, "d", "m2", "evicted", "owner", 30.0, "fifo")
    assert row_kind(row) == "evictions"
    assert told(row_message(9, row, small_figures(), names())) == {
        "time_s": 54.0, "seq": 9, "job": "d", "machine": "m2", "cluster": "lab",
        "reason": "owner", "reason_text": "evicted: the owner of the machine returned",
        "run_s": 30.0,
    }  # fmt: skip
    gone = OutcomeRecord(54.0, "d", "m9", "evicted", "owner", 30.0, "fifo")
    assert told(row_message(9, gone, small_figures(), names()))["cluster"] is None
