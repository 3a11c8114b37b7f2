"""Log lines of rejected events: the first immediately, then one a minute."""

import pytest
from structlog.testing import capture_logs

from outrider.engine.ingest.set_aside import AFTER_END, FAULT, REASONS
from outrider.journal import SetAsideRecord
from outrider.service.daemon.pump import SetAsideLog


def aside(reason: str, subject: str, detail: str = "") -> SetAsideRecord:
    return SetAsideRecord("log", 1.0, "started", subject, None, reason, detail)


@pytest.mark.parametrize("began_s", [0.0, 5.0, 1e6])
def test_each_reason_has_a_line_a_minute_with_the_number_of_events_since(began_s: float) -> None:
    now_s = began_s
    log = SetAsideLog(lambda: now_s)
    late, fault = AFTER_END, FAULT
    with capture_logs() as lines:
        log.note([aside(late, "1"), aside(late, "2"), aside(fault, "3", "ZeroDivisionError")])
        for later_s, subject in ((59.0, "4"), (60.0, "5"), (61.0, "6"), (119.9, "7"), (120.0, "8")):
            now_s = began_s + later_s
            log.note([aside(late, subject)])
    assert [(line["subject"], line["reason"], line["events"]) for line in lines] == [
        ("1", late, 1), ("3", fault, 1), ("5", late, 3), ("8", late, 3),
    ]  # fmt: skip
    assert [line["log_level"] for line in lines] == ["warning", "error", "warning", "warning"]
    assert [line["why"] for line in lines[:2]] == [REASONS[late], "ZeroDivisionError"]
