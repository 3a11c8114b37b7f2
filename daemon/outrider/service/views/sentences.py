"""Sentences that CLI, page and MQTT show: each is made here, once, and sent beside its numbers."""

import re
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from outrider.model.quantities import change, clock, count, duration, number, percent
from outrider.model.reasons import (
    START_ANSWER_TEXTS,
    WAITS_FOR_A_MACHINE,
    action_text,
    gate_text,
    reason_text,
    run_text,
)

if TYPE_CHECKING:
    from outrider.service.core.core import Core
    from outrider.service.core.source_state import Gap
    from outrider.service.shapes.jobs import BatchSystem
    from outrider.service.shapes.values import (
        ExpectedStart,
        JobStart,
        NoData,
        Score,
        StartsShown,
        StartUnder,
    )

# -- no data ---------------------------------------------------------------------------------------
# Adapters without data: the one rule of page, commands, MQTT and metrics.


def no_data(core: "Core") -> "list[NoData]":
    """Return the adapters that have no data now, each with a sentence."""
    from outrider.service.shapes.values import NoData  # commands import this module, too

    zone = core.config.timezone
    return [
        NoData(adapter=gap.label, since_s=gap.since_s, why=gap.why, text=_gap_text(gap, zone))
        for gap in core.gaps
    ]


def gap_lines(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line for each adapter without data by an answer; none for an older daemon's."""
    for gap in answer.get("no_data", ()):
        later = "" if gap["since_s"] is None else "; what it reported is as of then"
        yield f"{gap['text']}{later}"


def is_unknown(status: Mapping[str, Any]) -> bool:
    """Return whether no adapter has given any data yet: then no figure is known, not even 0."""
    gaps = status.get("no_data", ())
    is_all = 0 < len(gaps) == len(status["adapters"])
    return is_all and all(gap["since_s"] is None for gap in gaps)


def _gap_text(gap: "Gap", zone: str) -> str:
    since = "yet" if gap.since_s is None else f"since {_day_or_time(gap.since_s, zone)}"
    return f"No data {since} from adapter {gap.label}: {gap.why}"


def _day_or_time(time_s: float, zone: str) -> str:
    """Return a moment as the time of day, with the date unless it is today's."""
    date, moment, *_ = [*clock(time_s, zone).split(" "), ""]
    is_today = date == clock(time.time(), zone).split(" ")[0]
    return moment[:5] if is_today else f"{date} {moment[:5]}"


# -- policies --------------------------------------------------------------------------------------


def choice_text(action: str, reason: str) -> str:
    """Return what a policy chose for a job and why, without its name.

    >>> choice_text("defer", "no_machine"), choice_text("start", "first")
    ('no free machine can take it', 'start it: it is the first in the queue that fits')
    """
    if reason in WAITS_FOR_A_MACHINE:
        return reason_text(reason)
    verb = action_text(action)
    return f"{verb}: {reason_text(reason)}" if reason else verb


def policy_text(policy: Mapping[str, Any], zone: str, is_kept: bool = False) -> str:
    """Return a policy's pending decision about a job, as a sentence without its full stop.

    Args:
        policy: its name, action, reason, cluster, and until when it defers the job (`until_s`,
            and at most `latest_s`).
        zone: the site's, an IANA name.
        is_kept: the batch system keeps the job in the queue because of this decision.
    """
    name, action, reason = policy["name"], policy["action"], policy["reason"]
    if reason in WAITS_FOR_A_MACHINE:
        return f"{name}: {reason_text(reason)}"
    if action is None:
        return f"{name} has not considered it yet"
    why = f": {reason_text(reason)}" if reason else ""
    if action == "defer":
        verb = "keeps" if is_kept else "would keep"
        return f"{name} {verb} it queued{_until(policy, zone)}{why}"
    place = f" on {policy['cluster']}" if policy.get("cluster") else ""
    return f"{name} would {action_text(action)}{place}{why}"


def policy_lines(policies: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the texts of policies; one line for all that only wait for a machine.

    >>> waits = [{"name": n, "text": f"{n}: full", "reason": "no_machine"} for n in ("fifo", "sjf")]
    >>> policy_lines([*waits, {"name": "p", "text": "p would start it", "reason": "first"}])
    ['fifo, sjf: no free machine can take it', 'p would start it']
    """
    lines: dict[str, str] = {}
    for policy in policies:
        reason = policy["reason"]
        if reason not in WAITS_FOR_A_MACHINE:
            lines[policy["name"]] = policy["text"]
            continue
        known = lines.get(reason, "").removesuffix(f": {reason_text(reason)}")
        names = f"{known}, {policy['name']}" if known else policy["name"]
        lines[reason] = f"{names}: {reason_text(reason)}"
    return list(lines.values())


def _until(policy: Mapping[str, Any], zone: str) -> str:
    until_s, latest_s = policy.get("until_s"), policy.get("latest_s")
    until = "" if until_s is None else f" until {_minute(until_s, zone)}"
    if latest_s is None or latest_s == until_s:
        return until
    return f"{until} ({_minute(latest_s, zone)} at the latest)"


def _minute(time_s: float, zone: str) -> str:
    """Return a moment to the minute: a deferral is not planned by the second."""
    return re.sub(r"(:\d\d):\d\d ", r"\1 ", clock(time_s, zone))


def decision_text(row: Mapping[str, Any]) -> str:
    """Return what a policy did, or would have done, by one row of the journal.

    A decision in a mode that acts was applied unless the gate said otherwise.

    >>> row = {"policy": "p", "action": "start", "reason": "first", "machine": "m1"}
    >>> decision_text({**row, "mode": "canary", "gate": "refused: budget"})
    'p would start it on m1: it is the first in the queue that fits (refused: the limit of starts per minute is reached)'
    """  # noqa: E501 - the text of a doctest
    action, reason, gate = row["action"], row["reason"], row.get("gate")
    place = f" on {row['machine']}" if row.get("machine") else ""
    if reason in WAITS_FOR_A_MACHINE:
        return f"{row['policy']} found that {reason_text(reason)}"
    acted = row.get("mode") in ("canary", "active") and gate in (None, "act")
    verb = action_text(action, done=True) if acted else f"would {action_text(action)}"
    refusal = f" ({gate_text(gate)})" if gate is not None and gate.startswith("refused") else ""
    return f"{row['policy']} {verb}{place}: {reason_text(reason)}{refusal}"


# -- leases ----------------------------------------------------------------------------------------


def lease_in_words(lease: Mapping[str, Any]) -> str:
    """Return what Outrider has asked of the batch system for a job, as a sentence."""
    if lease["action"] is None:
        return f"The batch system refused Outrider's change: {lease['refused_because']}."
    if lease["action"] == "defer":
        return "Outrider keeps it in the queue until it decides otherwise."
    if lease["machine"] is not None:
        return f"Outrider has asked for machines like {lease['machine']} for it."
    if lease["action"] == "start":
        return "Outrider lets it start; the batch system decides when and where."
    return f"Outrider applied this decision: {lease['action']}."


# -- runs ------------------------------------------------------------------------------------------


def run_sentence(run: Mapping[str, Any], zone: str) -> str:
    """Return where and how long a run was, and how it ended."""
    began, how = clock(run["start_s"], zone), run_text(run["lost_because"])
    return f"ran on {run['machine']} from {began} for {duration(run['run_s'])}: {how}"


# -- expected starts -------------------------------------------------------------------------------

RULES: Final[Mapping[str, str]] = {
    "strict": "strict order",
    "first_fit": "first fit",
    "easy": "backfill (EASY)",
    "easy_sjbf": "backfill (EASY, shortest first)",
    "conservative": "backfill (conservative)",
}
_SECONDS_BELOW_S: Final = 300.0
"""Length of an interval below which its ends are shown to the second."""
_PREDICTED_WHEN: Final = {"submission": "at submission", "hourly": "while waiting"}


def start_lines(
    start: "JobStart | None",
    batch_system: "BatchSystem | None",
    now_s: float | None,
    zone: str,
) -> Iterator[str]:
    """Yield when a job is expected to start, and how good such answers have been.

    First under the batch system's own rule, then under each policy, then the batch system's own
    estimate, then the scores.

    Args:
        start: the part `expected_start` of an explanation; None: the job does not wait.
        batch_system: the part `batch_system`, which may hold its own estimate.
        now_s: the time at the site, Unix seconds.
        zone: the site's, an IANA name.
    """
    if start is not None:
        facts = _facts(start.rule, now_s, start.asked_s)
        yield _start_line("Expected to start", "Expected start", start, zone, facts)
        under_facts = _facts(None, now_s, start.under_asked_s)
        for one in start.under:
            name = one.policy
            yield _start_line(
                f"{name} would start it", f"Start under {name}", one, zone, under_facts
            )
    if batch_system is not None and batch_system.expected_start_s is not None:
        when = clock(batch_system.expected_start_s, zone)
        yield f"{batch_system.adapter} itself expects it to start {when}"
    elif start is not None and start.planned_s is not None:
        # a client that may not see names gets no answer of the batch system, but its plan
        when = clock(start.planned_s, zone)
        yield f"The batch system itself expected it to start {when}"
    if start is not None:
        yield from score_sentences(start.scores)


def starts_summary(starts: "StartsShown", now_s: float | None) -> str:
    """Return what holds for the expected starts of all jobs, in sentences.

    Args:
        starts: what `ExpectedStarts.shown` returned.
        now_s: the time at the site, Unix seconds.
    """
    if starts.not_said is not None:
        return f"Expected starts are not available: {starts.not_said}."
    n, unknown_n = starts.n, starts.not_known_n
    unknown = f", {count(unknown_n)} of them not known" if unknown_n else ""
    facts = _facts(starts.rule, now_s, starts.asked_s)
    about = f" ({facts})" if facts else ""
    parts = [f"Expected starts of {count(n)} queued {'job' if n == 1 else 'jobs'}{unknown}{about}."]
    parts += [f"{one}." for one in score_sentences(starts.scores)]
    parts += [f"No starts under {name}: {why}." for name, why in starts.under_not_said.items()]
    return " ".join(parts)


def score_sentences(scores: "Mapping[str, Score]") -> list[str]:
    """Return how the answers turned out, a sentence each without its full stop; empty: no score.

    >>> from outrider.service.shapes.values import Score
    >>> score_sentences({"submission": Score(1240, 0.81)})
    ['Of 1,240 starts predicted at submission, 81.0 % fell within the 80 % interval']
    """
    found = [
        f"Of {count(scores[kind].n)} starts predicted {when}, "
        f"{percent(scores[kind].coverage_ratio)} fell within the 80 % interval"
        for kind, when in _PREDICTED_WHEN.items()
        if kind in scores and scores[kind].n
    ]
    plans, ours = scores.get("batch_system"), scores.get("beside_batch_system")
    if plans and ours and plans.n:
        found.append(
            f"For {count(plans.n)} jobs that the batch system planned, its mean loss is "
            f"{duration(plans.pinball_s)}, Outrider's {duration(ours.pinball_s)}"
        )
    return found


def _facts(rule: str | None, now_s: float | None, asked_s: float | None) -> str:
    parts = [f"{RULES.get(rule, rule)} run forward"] if rule else []
    if now_s is not None and asked_s is not None:
        parts.append(f"computed {duration(max(0.0, now_s - asked_s))} ago")
    return ", ".join(parts)


def _start_line(
    verb: str, noun: str, answer: "JobStart | StartUnder", zone: str, facts: str
) -> str:
    kind, about = answer.answer, f" ({facts})" if facts else ""
    if answer.start is not None and kind == "interval":
        more = f", {facts}" if facts else ""
        return f"{verb} {_interval(answer.start, zone)} (80 % interval{more})"
    if kind == "next_pass":
        return f"{verb} {START_ANSWER_TEXTS[kind]}{about}"
    about = about if kind == "not_known" else ""
    return f"{noun} {START_ANSWER_TEXTS[kind]}: {answer.why}{about}"


def _interval(start: "ExpectedStart", zone: str) -> str:
    """Return the median and both ends; day and zone are named once where they are the same.

    >>> from outrider.service.shapes.values import ExpectedStart
    >>> _interval(ExpectedStart(low_s=49800.0, median_s=51600.0, high_s=57900.0), "UTC")
    '1970-01-01 14:20 UTC, between 13:50 and 16:05'
    """
    ends = [clock(s, zone).split(" ") for s in (start.median_s, start.low_s, start.high_s)]
    if any(len(end) != 3 for end in ends):  # no date of any calendar
        median, low, high = (" ".join(end) for end in ends)
        return f"{median}, between {low} and {high}"
    length = 8 if start.high_s - start.low_s < _SECONDS_BELOW_S else 5
    dates, times, zones = zip(*ends, strict=True)
    median, low, high = (time[:length] for time in times)
    if len(set(dates)) == len(set(zones)) == 1:
        return f"{dates[0]} {median} {zones[0]}, between {low} and {high}"
    (day, first, last) = dates
    (at, begin, end) = zones
    return f"{day} {median} {at}, between {first} {low} {begin} and {last} {high} {end}"


# -- twin ------------------------------------------------------------------------------------------


def twin_summary(twin: Mapping[str, Any], now_s: float, zone: str) -> str:
    """Return what the twin's last result covers, in sentences.

    Args:
        twin: the field `twin` of the status.
        now_s: Unix seconds.
        zone: the site's, an IANA name.
    """
    age = f"Computed {duration(max(0.0, now_s - twin['asked_s']))} ago"
    age += ", stale." if twin["stale"] else "."
    if twin["refused"] is not None:
        return f"Not estimated: {twin['refused']}. {age}"
    window = twin["window"]
    past = "" if window is None else f", {_window(window, zone)}"
    parts = [
        f"Past period{past}: ratio to {twin['incumbent']} (current scheduler), 90 % intervals."
    ]
    if twin["next"]:
        parts.append(f"Forecast: the next {number(twin['next_weeks'])} weeks.")
    elif twin["next_refused"]:
        parts.append(f"No forecast: {twin['next_refused']}.")
    if twin["next_expired"]:
        parts.append(f"Forecast expired: {twin['next_expired']}.")
    if twin["other_settings"]:
        parts.append(f"Settings changed since: {', '.join(twin['other_settings'])}.")
    return " ".join([*parts, age])


def _window(window: Mapping[str, float], zone: str) -> str:
    return f"{_minute(window['begin_s'], zone)} to {_minute(window['end_s'], zone)}"


# -- trial -----------------------------------------------------------------------------------------

TRIAL_LABELS: Final[Mapping[str, str]] = {
    "energy_ratio": "energy per useful CPU time",
    "badput_ratio": "wasted per useful CPU time",
    "evictions_ratio": "evictions per completed job",
    "overhead_capped_mean_ratio": "mean overhead, up to a day each",
}


def trial_summary(trial: Mapping[str, Any], zone: str) -> str:
    """Return the progress of a canary trial, or its end, as a sentence without its full stop.

    Args:
        trial: the field `trial` of the status.
        zone: the site's, an IANA name.
    """
    days = f"{trial['days_done']} of {count(trial['days'])} days"
    window = _window({"begin_s": trial["begins_s"], "end_s": trial["ends_s"]}, zone)
    begun = f"{trial['policy']}, days drawn at random, {window}, seed {trial['seed']}"
    if trial["restarts"]:
        begun += f", {trial['restarts']} restarts of the daemon"
    if trial["state"] == "broken_off":
        return f"Stopped after {days}: {trial['why']} ({begun})"
    if trial["state"] == "running":
        acts = "it acts now" if trial["acts_now"] else "it does not act now"
        until_s = trial["next_change_s"]
        until = "" if until_s is None else f" until {_minute(until_s, zone)}"
        return f"{days} done: {acts}{until}; ratios are shown when it ends ({begun})"
    outcome = trial["outcome"]
    if outcome is None or outcome["too_short"]:
        why = "no runs were counted" if outcome is None else outcome["too_short"]
        return f"Ended: {why} ({begun})"
    pairs = "1 pair" if outcome["pairs"] == 1 else f"{outcome['pairs']} pairs"
    return (
        f"Ended: days with acting compared with days without, {pairs} of days, 90 % intervals "
        f"({begun})"
    )


def trial_results(trial: Mapping[str, Any]) -> list[str]:
    """Return the result of each measure of a trial, next to the twin's prediction."""
    outcome = trial["outcome"]
    if trial["state"] != "ended" or outcome is None or outcome["too_short"]:
        return []
    source = {"next": "forecast", "past": "twin"}.get(trial["stated_as"], "predicted")
    return [
        f"{TRIAL_LABELS.get(name, name)}: {_trial_result(one, source)}"
        for name, one in outcome["measures"].items()
    ]


def _trial_result(one: Mapping[str, Any], source: str) -> str:
    if one["estimate"] is None:
        return "not known"
    result, stated = _change_interval(one), one["stated"]
    if stated is None or one["within"] is None:
        return result
    verdict = "within"
    if not one["within"]:
        verdict = "outside, but they agree" if one["agrees"] else "outside, and they disagree"
    return f"{result}; {source} {_change_interval(stated)}: {verdict}"


def _change_interval(ratio: Mapping[str, float]) -> str:
    return f"{change(ratio['estimate'])} ({change(ratio['low'])} to {change(ratio['high'])})"
