"""Tests of what the log says of sources that are up, impaired or down."""

from typing import Any

from structlog.testing import capture_logs

from outrider.api import Batch
from outrider.service.core.source_state import SourceState
from outrider.service.process.supervisor import SourceWatch


def test_a_part_that_does_not_answer_is_logged_once_and_so_is_its_return() -> None:
    nothing: Any = None  # a report needs neither the state nor the pumps
    watch = SourceWatch(nothing, nothing)
    source = SourceState("pool", "htcondor", inferred=False, lateness_s=5.0)
    watch.report(source)

    def logged(note: str, problem: str = "") -> list[tuple[str, str]]:
        with capture_logs() as lines:
            batch = Batch(events=[], cursor=None, note=note, problem=problem)
            source.note_batch(batch, stale_after_s=600.0)
            watch.report(source)
            watch.report(source)
        return [(line["event"], line.get("error", "")) for line in lines]

    away = "the collector does not answer: timed out"
    assert logged("") == []
    assert logged(away) == [("adapter_impaired", away)]
    assert logged(f"{away} again") == [], "a note may count seconds"
    assert logged("") == [("adapter_recovered", "")]
    assert logged("", "no negotiator runs") == [("adapter_down", "no negotiator runs")]
    assert logged("") == [("adapter_up", "")]
