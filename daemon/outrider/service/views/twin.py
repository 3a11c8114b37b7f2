"""View of the twin's last answer, as data and as sentences."""

import datetime as dt
from collections.abc import Mapping
from math import log
from typing import Any, Final

import msgspec

from outrider.model.localtime import time_zone
from outrider.model.quantities import duration
from outrider.service.config.declarations import Config, acting_of, policies_of, twin_of
from outrider.service.twin.starts_file import StartsFile
from outrider.service.twin.twin_file import TwinFile
from outrider.service.twin.watch import FRESH_S
from outrider.service.views.sentences import twin_summary
from outrider.twin.answer import finite_or_none
from outrider.twin.answer_file import TwinAnswer

NOT_ESTIMATED: Final = "not estimated yet"
_MEASURES: Final = (("energy_ratio", "energy"), ("badput_ratio", "wasted CPU time"))
"""Measures by preference: the first that is known is shown."""


def twin_shown(file: TwinFile | None, config: Config, now_s: float) -> dict[str, Any] | None:
    """Return the field `twin` of the status; None: the twin has not answered yet.

    Args:
        file: what stands in `twin.json`.
        config: the configuration in force.
        now_s: Unix seconds.
    """
    if file is None or file.answer is None or file.asked_s is None:
        return None
    answer = file.answer
    shown = {
        "asked_s": file.asked_s,
        "took_s": file.took_s,
        "asking_since_s": file.asking_since_s,
        "stale": is_stale(file, config, now_s),
        "refused": answer.refused,
        "incumbent": answer.incumbent,
        "window": _plain(answer.window),
        "past": _plain(answer.past),
        "next": _plain(answer.next),
        "next_weeks": file.next_weeks,
        "next_refused": answer.next_refused,
        "next_expired": expired(file),
        "candidates_refused": answer.candidates_refused,
        "other_settings": other_settings(file, config),
        "fidelity": _plain(answer.fidelity),
    }
    return {**shown, "summary": twin_summary(shown, now_s, config.timezone)}


def is_stale(file: TwinFile, config: Config, now_s: float) -> bool:
    """Return whether the answer is too old to be evidence. Arguments: see `twin_shown`."""
    return file.asked_s is not None and now_s - file.asked_s > twin_of(config).stale_after_s


def other_settings(file: TwinFile, config: Config) -> list[str]:
    """Return the policies whose settings have changed since the twin was asked.

    The answer holds for the old settings and the old limit of deferrals.
    """
    plain = msgspec.json.decode(msgspec.json.encode(policies_of(config)))
    bound_s = finite_or_none(acting_of(config).longest_deferral_s)
    if file.longest_deferral_s not in (bound_s, msgspec.UNSET):
        return sorted(file.candidates)
    return sorted(name for name, given in file.candidates.items() if plain.get(name) != given)


def expired(file: TwinFile) -> str | None:
    """Return why a forecast has expired; None: it is valid, or there is none.

    Load and share of waste may have changed by a limited logarithm since its past period.
    """
    answer, present = file.answer, file.present
    if answer is None or answer.next is None or present is None:
        return None
    most = answer.basis.most_log_change
    if most is None:
        return None
    found = []
    for what, now, before in (
        ("the load is {:.3g} CPUs", present.load_cpus, answer.basis.load_cpus),
        ("the share of waste is {:.3g}", present.waste_share, answer.basis.waste_share),
    ):
        if now is None or not before:
            continue
        if now <= 0 or abs(log(now / before)) > most:
            found.append(f"{what.format(now)}, in its past it was {before:.3g}")
    return "; ".join(found) or None


def saving_text(twin: Mapping[str, Any] | None, config: Config, now_s: float) -> str:
    """Return the comparison of policies in words, with intervals, window and age.

    Args:
        twin: as `twin_shown`.
        config: for the site's zone.
        now_s: Unix seconds.
    """
    if twin is None:
        return NOT_ESTIMATED
    age = f"asked {duration(max(0.0, now_s - twin['asked_s']))} ago"
    stale = ", stale" if twin["stale"] else ""
    if twin["refused"] is not None:
        return f"not estimated: {twin['refused']} ({age}{stale})"
    zone = time_zone(config.timezone)
    begin, end = (
        f"{dt.datetime.fromtimestamp(twin['window'][name], zone):%d %b %Y}"
        for name in ("begin_s", "end_s")
    )
    past = "; ".join(
        f"{policy} would have taken {_compared(ratios)}" for policy, ratios in twin["past"].items()
    )
    return (
        f"from {begin} to {end}, {past}, than {twin['incumbent']} (simulated, 90 % "
        f"intervals; {age}{stale})"
    )


def _compared(ratios: Mapping[str, Any]) -> str:
    for name, what in _MEASURES:
        ratio = ratios.get(name)
        if ratio is not None:
            return f"{less_or_more(ratio['low'], ratio['high'])} {what}"
    return "an unknown amount of energy"


def less_or_more(low: float, high: float) -> str:
    """Return an interval of a ratio in words.

    >>> less_or_more(0.72, 0.8), less_or_more(1.1, 1.25), less_or_more(0.97, 1.02)
    ('20 to 28 % less', '10 to 25 % more', '3 % less to 2 % more')
    """
    below, above = round(100 * (1 - low)), round(100 * (high - 1))
    if high <= 1:
        return f"{-above} to {below} % less"
    if low >= 1:
        return f"{-below} to {above} % more"
    return f"{below} % less to {above} % more"


def _plain(value: Any) -> Any:
    return msgspec.to_builtins(value)


# -- twin states -----------------------------------------------------------------------------------
# In which state the twin's answer, its forecast, its candidates and expected starts are: one each.
#
# Metrics give figures only in the state in which they hold, so that none that is old or refused can
# be taken for one that holds.

NONE: Final = "none"
ANSWERED: Final = "answered"
REFUSED: Final = "refused"
FAILED: Final = "failed"
STALE: Final = "stale"
OFF: Final = "off"
HOLDS: Final = "holds"
EXPIRED: Final = "expired"
CHANGED: Final = "changed"
NOT_ASKED: Final = "not_asked"
ANSWER_STATES: Final = (NONE, ANSWERED, REFUSED, FAILED, STALE, OFF)
FORECAST_STATES: Final = (NONE, HOLDS, EXPIRED, REFUSED)
CANDIDATE_STATES: Final = (NONE, ANSWERED, REFUSED, CHANGED, NOT_ASKED)
STARTS_STATES: Final = (NONE, ANSWERED, FAILED, STALE)


def answer_state(file: TwinFile | None, config: Config, now_s: float) -> str:
    """Return the state of the answer as a whole, one of `ANSWER_STATES`.

    ``refused``: the twin cannot know; ``failed``: it could not be asked; ``off``: `every_s` is 0,
    and no answer is fresh.

    Args:
        file: what stands in `twin.json`.
        config: the configuration in force.
        now_s: Unix seconds.
    """
    is_asked = twin_of(config).every_s > 0
    if file is None or file.answer is None or file.asked_s is None:
        return NONE if is_asked else OFF
    if is_stale(file, config, now_s):
        return STALE if is_asked else OFF
    if file.answer.refused is None:
        return ANSWERED
    return FAILED if file.failures else REFUSED


def forecast_state(file: TwinFile | None, config: Config, now_s: float) -> str:
    """Return the state of the forecast, one of `FORECAST_STATES`; see `answer_state`."""
    if file is None or file.answer is None or answer_state(file, config, now_s) != ANSWERED:
        return NONE
    if file.answer.next is None:
        return NONE if file.answer.next_refused is None else REFUSED
    return HOLDS if expired(file) is None else EXPIRED


def candidate_states(file: TwinFile | None, config: Config, now_s: float) -> dict[str, str]:
    """Return the state of each configured policy, one of `CANDIDATE_STATES`.

    ``none``: there is no answer about any; ``changed``: it is configured otherwise now than when
    the twin was asked. Arguments as of `answer_state`.
    """
    policies = policies_of(config)
    if file is None or file.answer is None or answer_state(file, config, now_s) != ANSWERED:
        return dict.fromkeys(policies, NONE)
    changed = other_settings(file, config)
    return {name: _candidate_state(name, file, file.answer, changed) for name in policies}


def _candidate_state(name: str, file: TwinFile, answer: TwinAnswer, changed: list[str]) -> str:
    if name not in file.candidates:
        return NOT_ASKED
    if name in changed:
        return CHANGED
    if name in answer.candidates_refused:
        return REFUSED
    return ANSWERED if name in answer.past else NONE


def starts_state(starts: StartsFile | None, age_s: float | None) -> str:
    """Return the state of expected starts, one of `STARTS_STATES`.

    Args:
        starts: what stands in `starts.json`.
        age_s: how old that is, seconds; None: there is nothing.
    """
    if starts is None or age_s is None:
        return NONE
    if starts.problem is not None:
        return FAILED
    return ANSWERED if abs(age_s) <= FRESH_S else STALE
