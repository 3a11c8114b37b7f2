"""Status, forecast, trial and evidence as lines of text."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from outrider.cli.printing import clock
from outrider.model.quantities import RATIO_LABELS, count, duration, percent

# -- trial lines -----------------------------------------------------------------------------------
# A canary trial, in lines for people.


def trial_lines(trial: dict[str, Any] | None, zone: str) -> list[str]:
    """How far it is, or what came of it; none where there was none."""
    if trial is None:
        return []
    days = f"{trial['days_done']} of {trial['days']} days"
    begin = f"{trial['policy']}, from {clock(trial['begins_s'], zone)}, seed {trial['seed']}"
    if trial["restarts"]:
        begin += f", {trial['restarts']} restarts of the daemon meanwhile"
    if trial["state"] == "broken_off":
        return [f"trial      broken off after {days}: {trial['why']} ({begin})"]
    if trial["state"] == "running":
        today = "it acts now" if trial["acts_now"] else "it does not act now"
        return [f"trial      {days} done; {today}; no ratio before its end ({begin})"]
    outcome = trial["outcome"]
    if outcome is None or outcome["too_short"]:
        why = "nothing was counted" if outcome is None else outcome["too_short"]
        return [f"trial      ended: {why} ({begin})"]
    lines = [f"trial      ended: {outcome['pairs']} pairs of days ({begin})"]
    stated = {"next": "forecast", "past": "twin"}.get(trial["stated_as"], "")
    return lines + [
        f"           {name}: {_trial_ratio(one)}{_beside(one, stated)}"
        for name, one in outcome["measures"].items()
    ]


def _trial_ratio(one: dict[str, Any]) -> str:
    if one["estimate"] is None:
        return "not known"
    return f"{one['estimate']:.3f} ({one['low']:.3f} to {one['high']:.3f})"


def _beside(one: dict[str, Any], stated: str) -> str:
    told = one["stated"]
    if told is None or one["within"] is None:
        return ""
    verdict = (
        "within" if one["within"] else "outside" + (", agrees" if one["agrees"] else ", disagrees")
    )
    return f"; {stated} {told['estimate']:.3f} ({told['low']:.3f} to {told['high']:.3f}): {verdict}"


# -- twin lines ------------------------------------------------------------------------------------
# What the daemon's twin says, in lines for people.

_SHOWN: Final = ("energy_ratio", "badput_ratio", "overhead_mean_ratio")


def twin_lines(twin: Mapping[str, Any] | None, zone: str) -> Iterator[str]:
    """The lines; none where it has not answered. What it says in words, `saving` has already."""
    if twin is None:
        return
    asked = clock(twin["asked_s"], zone) + (", STALE" if twin["stale"] else "")
    if twin["refused"] is not None:
        yield f"twin       refused: {twin['refused']} (asked {asked})"
        return
    yield f"twin       candidate over {twin['incumbent']}, 90 % intervals; asked {asked}"
    for policy, ratios in twin["past"].items():
        yield f"           past      {policy}: {_ratios(ratios)}"
    for policy, ratios in (twin["next"] or {}).items():
        yield f"           forecast  {policy}: {_ratios(ratios)}"
    for policy, why in twin["candidates_refused"].items():
        yield f"           refused   {policy}: {why}"
    if twin["next_refused"] is not None:
        yield f"           no forecast: {twin['next_refused']}"
    if twin["next_expired"] is not None:
        yield f"           the forecast holds no more: {twin['next_expired']}"
    if twin["other_settings"]:
        yield f"           configured otherwise now: {', '.join(twin['other_settings'])}"


def _ratios(ratios: Mapping[str, Any]) -> str:
    return ", ".join(f"{RATIO_LABELS[name]} {_ratio(ratios.get(name))}" for name in _SHOWN)


def _ratio(ratio: Mapping[str, Any] | None) -> str:
    if ratio is None:
        return "unknown"
    return f"{ratio['estimate']:.2f} ({ratio['low']:.2f} to {ratio['high']:.2f})"


# -- expected start lines --------------------------------------------------------------------------
# When a job that waits is expected to start, in lines for people.

RULES: Final = {
    "strict": "strict order",
    "first_fit": "first fit",
    "easy": "backfill (EASY)",
    "easy_sjbf": "backfill (EASY, shortest first)",
    "conservative": "backfill (conservative)",
}
_SECONDS_BELOW_S: Final = 300.0
"""An interval that is shorter is told to the second."""
_WHEN: Final = {"submission": "at submission", "hourly": "while waiting"}


def expected_start_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """Under the batch system's rule, under each policy, by the batch system itself; and how good.

    Args:
        found: the explanation of a job. An older daemon tells of no expected start.
    """
    told, said, zone = found.get("expected_start"), found.get("batch_system"), found["timezone"]
    if told is not None:
        age = _age(found["now_s"], told["asked_s"])
        yield f"  {_start('expected to start', 'expected start', told, zone, _rule(told) + age)}"
        for one in told["under"]:
            name = one["policy"]
            age = _age(found["now_s"], told["under_asked_s"])
            yield f"    {_start(f'{name} would start it', f'start under {name}', one, zone, age)}"
    if said is not None and said["expected_start_s"] is not None:
        when = clock(said["expected_start_s"], zone)
        yield f"    {said['adapter']} itself expects it to start {when}"
    elif told is not None and told["planned_s"] is not None:  # who may not see names asks nobody
        when = clock(told["planned_s"], zone)
        yield f"    the batch system itself expected it to start {when}"
    if told is not None and (scores := score_words(told["scores"])):
        yield f"    {scores}"


def starts_line(starts: Mapping[str, Any] | None, now_s: float) -> str:
    """The same for all jobs that wait; empty: an older daemon does not tell."""
    if starts is None:
        return ""
    if starts["not_said"] is not None:
        return f"not said: {starts['not_said']}"
    unknown = f", {count(starts['not_known_n'])} of them not known" if starts["not_known_n"] else ""
    facts = _rule(starts) + _age(now_s, starts["asked_s"])
    line = f"expected of {_jobs(starts['n'])} that wait{unknown} ({facts.removeprefix(', ')})"
    scores = score_words(starts["scores"])
    return f"{line}; {scores}" if scores else line


def score_words(scores: Mapping[str, Mapping[str, Any]]) -> str:
    """How answers turned out; empty before any has.

    >>> score_words({"submission": {"n": 1240, "coverage_ratio": 0.81}})
    'of 1,240 starts foretold at submission, 81.0 % lay within the interval'
    """
    told = [
        f"of {count(scores[kind]['n'])} starts foretold {when}, "
        f"{percent(scores[kind]['coverage_ratio'])} lay within the interval"
        for kind, when in _WHEN.items()
        if kind in scores and scores[kind]["n"]
    ]
    plans, ours = scores.get("batch_system"), scores.get("beside_batch_system")
    if plans and ours and plans["n"]:
        told.append(
            f"where the batch system had a plan ({count(plans['n'])} times), its mean loss is "
            f"{duration(plans['pinball_s'])}, this one's {duration(ours['pinball_s'])}"
        )
    return "; ".join(told)


def _start(verb: str, noun: str, answer: Mapping[str, Any], zone: str, facts: str) -> str:
    if answer["answer"] == "not_said":
        return f"{noun} not said: {answer['why']}"
    if answer["answer"] == "not_known":
        return f"{noun} not known: {answer['why']} ({facts.removeprefix(', ')})"
    if answer["answer"] == "next_pass":
        return f"{verb} now, in the next pass ({facts.removeprefix(', ')})"
    return f"{verb} {_interval(answer['start'], zone)} (80 % interval{facts})"


def _rule(told: Mapping[str, Any]) -> str:
    return f", {RULES.get(told['rule'], told['rule'])} run forward" if told["rule"] else ""


def _age(now_s: float | None, asked_s: float | None) -> str:
    if now_s is None or asked_s is None:
        return ""
    return f", said {duration(max(0.0, now_s - asked_s))} ago"


def _interval(start: Mapping[str, float], zone: str) -> str:
    """The median and both ends; the day and the zone once, where they are one.

    >>> _interval({"low_s": 49800.0, "median_s": 51600.0, "high_s": 57900.0}, "UTC")
    '1970-01-01 14:20 UTC, between 13:50 and 16:05'
    """
    ends = [clock(start[name], zone).split(" ") for name in ("median_s", "low_s", "high_s")]
    if any(len(end) != 3 for end in ends):  # no date of any calendar
        median, low, high = (" ".join(end) for end in ends)
        return f"{median}, between {low} and {high}"
    length = 8 if start["high_s"] - start["low_s"] < _SECONDS_BELOW_S else 5
    dates, times, zones = zip(*ends, strict=True)
    median, low, high = (time[:length] for time in times)
    if len(set(dates)) == len(set(zones)) == 1:
        return f"{dates[0]} {median} {zones[0]}, between {low} and {high}"
    (day, first, last) = dates
    (at, begin, end) = zones
    return f"{day} {median} {at}, between {first} {low} {begin} and {last} {high} {end}"


def _jobs(number: int) -> str:
    return f"{count(number)} {'job' if number == 1 else 'jobs'}"


# -- evidence --------------------------------------------------------------------------------------
# The evidence before a step of the mode, in lines for people.

_SPANS = ("mean_wait_s",)


def evidence_lines(evidence: dict[str, Any], zone: str = "UTC") -> list[str]:
    """What `GET /api/v1/promotion` answers, for people; times in the site's zone."""
    since_s = evidence["mode_since_s"]
    since = "" if since_s is None else f" since {clock(since_s, zone)}"
    step = evidence["next_mode"] or "none"
    ceiling = evidence["configured_mode"]
    watched, needed = duration(evidence["watched_s"]), duration(evidence["needed_s"])
    lines = [
        f"mode       {evidence['mode']}{since}; the configuration's: {ceiling}; next step: {step}",
        f"decided    for {watched} in this mode or above, needed: {needed}",
    ]
    lines += [f"policy     {_policy(one)}" for one in evidence["policies"]]
    lines += [f"guard      {_guard(one)}" for one in evidence["guards"]]
    lines += [
        f"source     {one['label']} is {'up' if one['up'] else 'DOWN: ' + one['why']}"
        for one in evidence["sources"]
    ]
    lines += [f"twin       {line}" for line in _twin(evidence["twin"], zone)]
    lines += trial_lines(evidence.get("trial"), zone)
    lines += [f"against    {why}" for why in evidence["against"]]
    return lines if evidence["against"] else [*lines, "against    nothing"]


def _policy(one: dict[str, Any]) -> str:
    if one["failed"] is not None:
        return f"{one['name']} has FAILED: {one['failed']}"
    compared = one["agreed"] + one["disagreed"]
    refused = {why: n for why, n in one["would_refuse"].items() if n}
    gate = ", ".join(f"{count(n)} {why}" for why, n in refused.items()) or "none"
    return (
        f"{one['name']}: {count(one['decisions'])} decisions; as the batch system did in "
        f"{percent(one['agreement_ratio'])} of {count(compared)} starts; the gate lets through "
        f"{count(one['would_act'])}, refuses {gate}"
    )


def _twin(twin: dict[str, Any] | None, zone: str) -> Iterator[str]:
    if twin is None or twin["asked_s"] is None:
        yield "no estimate yet"
        return
    needed = "" if twin["needed"] else "; not needed (promote_by_twin)"
    yield f"asked {clock(twin['asked_s'], zone)}{' STALE' if twin['stale'] else ''}{needed}"
    for policy, why in twin["refused"].items():
        yield f"{policy}: refused: {why}"
    for policy, ratios in twin["past"].items():
        told = ", ".join(
            f"{RATIO_LABELS[name]} {_evidence_interval(ratios.get(name))}" for name in _SHOWN
        )
        yield f"{policy}, over the incumbent: {told}"


def _evidence_interval(one: dict[str, Any] | None) -> str:
    return (
        "unknown"
        if one is None
        else f"{one['estimate']:.2f} ({one['low']:.2f} to {one['high']:.2f})"
    )


def _guard(one: dict[str, Any]) -> str:
    bound = "no bound" if one["bound"] is None else f"bound {_figure(one, one['bound'])}"
    if one["value"] is None:
        return f"{one['name']}: not known yet; {bound}"
    broken = " BROKEN" if one["broken"] else ""
    return f"{one['name']}: {_figure(one, one['value'])}; {bound}{broken}"


def _figure(one: dict[str, Any], value: float) -> str:
    return duration(value) if one["name"] in _SPANS else f"{value:.3g}"
