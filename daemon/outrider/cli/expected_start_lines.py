"""When a job that waits is expected to start, in lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from outrider.cli.printing import clock, count, duration, ratio

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
        f"{ratio(scores[kind]['coverage_ratio'])} lay within the interval"
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
