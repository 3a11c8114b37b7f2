"""The report as one document of plain data, from which the page and the tables are made."""

import datetime as dt
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from outrider.report.figures import figures
from outrider.report.offenders import offenders
from outrider.report.past import Counted, Past, read_past
from outrider.report.tariff import UNKNOWN, Tariff
from outrider.report.windows import Window
from outrider.report.would_have_been import twin_window, would_have_been
from outrider.twin.answer_file import TwinAnswer


def document(
    path: Path,
    window: Window,
    before: Window,
    zone: dt.tzinfo,
    *,
    tariff: Tariff = UNKNOWN,
    answer: TwinAnswer | None = None,
    targets: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """The object of ``outrider report --json`` (docs/report.md), but for its provenance.

    Args:
        path: of the journal.
        window: what is reported.
        before: what it is compared with: as long, and over when `window` begins.
        zone: of the site's wall clock.
        tariff: what energy costs.
        answer: the twin's, about the same journal; None: it was not asked.
        targets: fair shares by VO; None: equal.

    Raises:
        LedgerError: the journal cannot be read.
        TraceError: it holds no events of a site.
    """
    targets = targets or {}
    past = read_past(path, (before, window), twin_window(answer), targets)
    earlier, shown = past.counted
    was = figures(shown, targets, tariff)
    return {
        "window": _window(shown, zone),
        "was": was,
        "before": {
            "window": _window(earlier, zone), "was": figures(earlier, targets, tariff)
        },
        "offenders": offenders(shown.runs, past.machine_names, tariff) if was else None,
        "would_have_been": None if answer is None else (
            {"window": _twins(answer, zone)} | would_have_been(answer, past, tariff, was, window)
        ),
        "tariff": tariff._asdict(),
        "journal": _journal(past, zone),
    }  # fmt: skip


def _window(counted: Counted, zone: dt.tzinfo) -> dict[str, Any]:
    window = counted.window
    return _moments(window.begin_s, window.end_s, zone) | {"covered_s": counted.covered_s}


def _twins(answer: TwinAnswer, zone: dt.tzinfo) -> dict[str, Any] | None:
    window = answer.window
    return None if window is None else _moments(window.begin_s, window.end_s, zone)


def _moments(begin_s: float, end_s: float, zone: dt.tzinfo) -> dict[str, Any]:
    return {
        "begin_s": begin_s, "end_s": end_s, "begin": _iso(begin_s, zone), "end": _iso(end_s, zone)
    }  # fmt: skip


def _iso(time_s: float, zone: dt.tzinfo) -> str:
    return dt.datetime.fromtimestamp(time_s, zone).isoformat(timespec="minutes")


def _journal(past: Past, zone: dt.tzinfo) -> dict[str, Any]:
    """How sure the figures of the past are: what the record lacks."""
    return _moments(past.first_s, past.last_s, zone) | {
        "timezone": str(zone),
        "begins_pruned": past.pruned,
        "incumbent": past.incumbent,
        "repairs": past.repairs,
        "set_aside": past.set_aside,
        "machines": past.inferred[1],
        "machines_inferred": past.inferred[0],
    }
