"""Report as one document of plain data, from which the page and the tables are made."""

import datetime as dt
from collections.abc import Callable, Mapping
from math import log
from pathlib import Path
from typing import Any, Final

import msgspec

from outrider.model.errors import ConfigurationError
from outrider.model.localtime import HOUR_S
from outrider.report.figures import UNKNOWN, Tariff, figures, kwh
from outrider.report.offenders import offenders
from outrider.report.past import Counted, Past, read_past
from outrider.report.runs import Sums
from outrider.report.windows import Window
from outrider.twin.answer_file import Basis, Ratio, Ratios, TwinAnswer


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
    """Return the object of ``outrider report --json`` (docs/report.md), without its provenance.

    Args:
        path: of the journal.
        window: the period to report.
        before: the period to compare with: equally long, and over when `window` begins.
        zone: of the site's wall clock.
        tariff: what energy costs.
        answer: the twin's result for the same journal; None: there is none.
        targets: fair shares by VO; None: equal.

    Raises:
        LedgerError: the journal cannot be read.
        TraceError: the journal holds no events of a site.
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
            {"window": _period(answer, zone)} | would_have_been(answer, past, tariff, was, window)
        ),
        "tariff": tariff._asdict(),
        "journal": _journal(past, zone),
    }  # fmt: skip


def _window(counted: Counted, zone: dt.tzinfo) -> dict[str, Any]:
    window = counted.window
    return _moments(window.begin_s, window.end_s, zone) | {"covered_s": counted.covered_s}


def _period(answer: TwinAnswer, zone: dt.tzinfo) -> dict[str, Any] | None:
    window = answer.window
    return None if window is None else _moments(window.begin_s, window.end_s, zone)


def _moments(begin_s: float, end_s: float, zone: dt.tzinfo) -> dict[str, Any]:
    return {
        "begin_s": begin_s, "end_s": end_s, "begin": _iso(begin_s, zone), "end": _iso(end_s, zone)
    }  # fmt: skip


def _iso(time_s: float, zone: dt.tzinfo) -> str:
    return dt.datetime.fromtimestamp(time_s, zone).isoformat(timespec="minutes")


def _journal(past: Past, zone: dt.tzinfo) -> dict[str, Any]:
    """Return what the record covers and what it lacks, to judge the figures of the past."""
    return _moments(past.first_s, past.last_s, zone) | {
        "timezone": str(zone),
        "begins_pruned": past.pruned,
        "incumbent": past.incumbent,
        "repairs": past.repairs,
        "set_aside": past.set_aside,
        "machines": past.inferred[1],
        "machines_inferred": past.inferred[0],
    }


# -- twin result ----------------------------------------------------------------------------------
# Amounts under another policy: the twin's ratios times the measured amounts, in the twin's window.

_NOT_ON_RECORD: Final = (
    "the journal covers only a part of this window, so there are no amounts for the ratios; "
    "expected a result for this journal as it is now"
)
_NO_WATTS: Final = "watts of some machines are unknown; expected watts in [clusters.NAME]"
MOMENT_S: Final = 1.0
"""Tolerance for times of the result and of the journal, seconds."""
Amount = Callable[[float], Mapping[str, float | None]]
"""Return the amounts for a factor, by unit."""


def twin_window(answer: TwinAnswer | None) -> Window | None:
    """Return the window of a twin result, including its last moment; None if it has none."""
    if answer is None or answer.window is None:
        return None
    return Window.closed(answer.window.begin_s, answer.window.end_s)


def would_have_been(
    answer: TwinAnswer, past: Past, tariff: Tariff, shown: Mapping[str, Any] | None,
    window: Window,
) -> dict[str, Any]:  # fmt: skip
    """Return the twin's result as the report shows it, without its window.

    Args:
        answer: the twin's result.
        past: with the runs of the twin's window as `more`.
        tariff: what energy costs.
        shown: figures of the reported window; None: nothing is on record.
        window: the reported one.
    """
    was = past.more.total if past.more is not None and _covered(answer, past) else None
    return {
        "incumbent": answer.incumbent,
        "fidelity": None if answer.fidelity is None else {
            "passed": answer.fidelity.passed, "parts": answer.fidelity.parts,
            "bounds": answer.fidelity.bounds,
        },
        "refused": answer.refused,
        "candidates_refused": answer.candidates_refused,
        "was": None if was is None else _was(was, tariff),
        "unknown": _unknown(was),
        "past": _past_measures(answer.past, was, tariff),
        "forecast": {
            "refused": answer.next_refused,
            "ratios": None if answer.next is None else {
                policy: {name: _ratio(ratio) for name, ratio in ratios.items()}
                for policy, ratios in answer.next.items()
            },
        } | _expiry(answer, shown, window),
        "asked": {"command": answer.command, "date": answer.date},
    }  # fmt: skip


def _covered(answer: TwinAnswer, past: Past) -> bool:
    """Return whether the journal covers the whole window of the twin's result."""
    return answer.window is not None and (
        answer.window.begin_s >= past.first_s - MOMENT_S
        and answer.window.end_s <= past.last_s + MOMENT_S
    )


def _was(total: Sums, tariff: Tariff) -> dict[str, Any]:
    return {
        "energy": tariff.of(kwh(total.goodput_j + total.badput_j)),
        "badput_h": total.badput_s / HOUR_S,
        "evictions": total.thrown_away,
    }


def _unknown(was: Sums | None) -> str | None:
    if was is None:
        return _NOT_ON_RECORD
    return _NO_WATTS if kwh(was.goodput_j + was.badput_j) is None else None


def _past_measures(past: Mapping[str, Ratios], was: Sums | None, tariff: Tariff) -> dict[str, Any]:
    """Return the ratio of each candidate and measure, with amounts where they are known."""
    amounts: dict[str, Amount] = {}
    if was is not None:
        all_kwh, badput_h = kwh(was.goodput_j + was.badput_j), was.badput_s / HOUR_S
        if all_kwh is not None:
            amounts["energy_ratio"] = lambda times: tariff.of(times * all_kwh)
        amounts["badput_ratio"] = lambda times: {"badput_h": times * badput_h}
        amounts["evictions_ratio"] = lambda times: {"evictions": times * was.thrown_away}
    return {
        policy: {
            name: _measure(ratio, amounts.get(name)) for name, ratio in ratios.items()
        }
        for policy, ratios in past.items()
    }  # fmt: skip


def _measure(ratio: Ratio | None, amount: Amount | None) -> dict[str, Any] | None:
    if ratio is None:
        return None
    fields: dict[str, Any] = {
        "ratio": _ratio(ratio), "told_apart": not ratio.low <= 1.0 <= ratio.high,
        "would": None, "saved": None,
    }  # fmt: skip
    if amount is not None:
        fields["would"] = _by_unit(amount, ratio.estimate, ratio.low, ratio.high)
        fields["saved"] = _by_unit(
            amount, 1.0 - ratio.estimate, 1.0 - ratio.high, 1.0 - ratio.low
        )  # fmt: skip
    return fields


def _by_unit(amount: Amount, estimate: float, low: float, high: float) -> dict[str, Any]:
    """An amount with its interval, by unit."""
    ends = {"estimate": amount(estimate), "low": amount(low), "high": amount(high)}
    return {
        unit: None if known is None else {end: of[unit] for end, of in ends.items()}
        for unit, known in ends["estimate"].items()
    }


def _ratio(ratio: Ratio | None) -> dict[str, float] | None:
    if ratio is None:
        return None
    return {
        "estimate": ratio.estimate, "low": ratio.low, "high": ratio.high, "level": ratio.level
    }  # fmt: skip


def _expiry(
    answer: TwinAnswer, shown: Mapping[str, Any] | None, window: Window
) -> dict[str, Any]:  # fmt: skip
    """Return whether the reported window shows that the twin's forecast has expired."""
    unknown = {"expired": None, "log_changes": None}
    if answer.next is None or shown is None or answer.window is None:
        return unknown
    if window.begin_s < answer.window.end_s - MOMENT_S:
        return unknown
    changes = {
        "load_cpus": _log_change(answer.basis.load_cpus, shown["load_cpus"]),
        "waste_share": _log_change(answer.basis.waste_share, shown["waste_ratio"]),
    }
    return {"expired": _is_expired(answer.basis, changes), "log_changes": changes}


def _log_change(before: float | None, now: float | None) -> float | None:
    return log(now / before) if before and now else None


def _is_expired(basis: Basis, changes: Mapping[str, float | None]) -> bool | None:
    if basis.most_log_change is None:
        return None
    found = [abs(change) for change in changes.values() if change is not None]
    if any(change > basis.most_log_change for change in found):
        return True
    return False if len(found) == len(changes) else None


# -- twin answer ----------------------------------------------------------------------------------
# The twin's result for a report: read from a file, or just computed.


def read_answer(path: Path) -> TwinAnswer:
    """Read a file with the output of ``outrider twin JOURNAL --json``.

    Raises:
        ConfigurationError: the file cannot be read, or is something else.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=TwinAnswer)
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path}: is not a result of the twin: {error}; expected what "
            "`outrider twin JOURNAL --policy NAME --json` prints"
        ) from error


def answer_of(answer: dict[str, Any]) -> TwinAnswer:
    """Convert the result of `outrider.twin.answer.Answer.to_json`.

    Raises:
        ConfigurationError: the data are something else.
    """
    try:
        return msgspec.json.decode(msgspec.json.encode(answer), type=TwinAnswer)
    except msgspec.MsgspecError as error:
        raise ConfigurationError(f"the twin's answer cannot be read: {error}") from error
