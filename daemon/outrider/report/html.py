"""The page of a report, from its document alone."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from markupsafe import Markup

from outrider.model.quantities import MISSING, RATIO_LABELS, count, number, percent
from outrider.report.rendering import (
    amounts,
    cost,
    cost_cells,
    cost_heads,
    heading,
    hours,
    interval,
    made_by,
    name,
    page,
    prose,
    reasons,
    subheading,
    table,
    units,
    window,
)


def html(told: Mapping[str, Any]) -> str:
    """The page.

    Args:
        told: `outrider.report.document.document`, and its provenance where it has any.
    """
    window = told["window"]
    title = f"Outrider report, {window['begin'][:10]} to {window['end'][:10]}"
    return page(title, _parts(told))


def _parts(told: Mapping[str, Any]) -> Iterator[Markup]:
    for line in summary(told):
        yield prose(line)
    yield from what_was(told)
    yield from what_would_have_been(told)
    yield from worst_offenders(told)
    yield from how_sure(told)
    yield from made_by(told)


def summary(told: Mapping[str, Any]) -> list[str]:
    """The report in a few sentences, for the top of the page and for the terminal."""
    was, currency = told["was"], told["tariff"]["currency"]
    if was is None:
        lines = ["The journal tells nothing of this window."]
    else:
        badput = was["energy"]["by_purpose"]["badput"]
        counted = (
            f"Counted in the window: {cost(was['energy']['drawn'], currency)} drawn by all "
            f"machines; {number(was['badput_h'], 'h')} of CPU time "
            f"({percent(was['waste_ratio'])} of all that ended) in runs that were thrown away, "
            f"whose energy is {cost(badput, currency)}."
        )
        holes = ", ".join(name(one["machine"]) for one in told["offenders"]["black_holes"])
        lines = [counted, f"Black holes: {holes}."] if holes else [counted]
    return lines + _of_the_twin(told["would_have_been"], currency)


def _of_the_twin(found: Mapping[str, Any] | None, currency: str) -> list[str]:
    if found is None:
        return ["What would have been was not asked."]
    if found["refused"] is not None:
        return [f"What would have been is not known: {found['refused']}"]
    lines, window = [], found["window"]
    for policy, measures in found["past"].items():
        energy = measures.get("energy_ratio")
        if energy is None or energy["saved"] is None:
            lines.append(f"What {name(policy)} would have saved in energy is not known.")
            continue
        sure = "" if energy["told_apart"] else ", not told apart from nothing"
        more = " (less than 0: more energy)" if energy["ratio"]["high"] > 1.0 else ""
        lines.append(
            f"In the twin's window, {window['begin'][:10]} to {window['end'][:10]}, "
            f"{name(policy)} would have saved {amounts(energy['saved'], currency)}{more} of the "
            f"energy of runs ({100 * energy['ratio']['level']:g} % interval{sure})."
        )
    return lines


# -- offenders page --------------------------------------------------------------------------------
# The part of the page that lists the worst offenders.


def worst_offenders(told: Mapping[str, Any]) -> Iterator[Markup]:
    """Users, machines, black holes and jobs; nothing for an empty window."""
    found, tariff = told["offenders"], told["tariff"]
    if found is None:
        return
    heads = ("badput", "of all badput", *cost_heads("its energy", tariff), "runs", "goodput")
    yield heading("Where work was thrown away")
    yield prose(
        f"Runs that ended in {window(told['window'])} before their job was done, whoever is to "
        "blame: a user whose jobs are evicted by owners is listed as is one who removes them. The "
        "reasons say which."
    )
    yield subheading("Users, by badput")
    yield table(
        ("user", "reasons", *heads),
        [(name(one["user"]), reasons(one["reasons"]), *_badput(one, tariff))
         for one in found["users"]],
        in_words=2,
    )  # fmt: skip
    yield subheading("Machines, by badput")
    yield table(
        ("machine", "reasons", *heads, "starts"),
        [(name(one["machine"]), reasons(one["reasons"]), *_badput(one, tariff),
          count(one["starts"])) for one in found["machines"]],
        in_words=2,
    )  # fmt: skip
    yield from _starts(found)
    yield subheading("Jobs that ran and were thrown away most often")
    yield table(
        ("job", "user", "reasons", *heads),
        [(name(one["job"]), name(one["user"]), reasons(one["reasons"]), *_badput(one, tariff))
         for one in found["jobs"]],
        in_words=3,
    )  # fmt: skip


def _badput(one: Mapping[str, Any], tariff: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        number(one["badput_h"], "h"), percent(one["badput_share"]),
        *cost_cells(one["badput"], tariff), count(one["thrown_away"]),
        number(one["goodput_h"], "h"),
    )  # fmt: skip


def _starts(found: Mapping[str, Any]) -> Iterator[Markup]:
    rule = found["rule"]
    minutes = f"{rule['within_s'] / 60.0:g} minutes"
    yield subheading("Machines, by failed starts")
    yield prose(
        f"A start failed where the run ended within {minutes} as {', '.join(rule['reasons'])}. A "
        "job counts once on each machine."
    )
    yield table(
        ("machine", "jobs tried", "jobs failed"),
        [(name(one["machine"]), count(one["jobs_tried"]), count(one["jobs_failed"]))
         for one in found["failed_starts"]],
    )  # fmt: skip
    yield subheading("Black holes")
    yield prose(
        f"Machines whose rate of failed starts is, by a one-sided bound at "
        f"{percent(1.0 - rule['alpha'])} over all {count(rule['machines'])} machines together, "
        f"beyond {rule['times']:g} times that of the same users' jobs elsewhere, with jobs of "
        f"{count(rule['fewest_users'])} users or more. Jobs that fail and count as completed (the "
        "journal has no exit codes) cannot be seen."
    )
    if not found["black_holes"]:
        yield prose("None was found.")
        return
    yield table(
        ("machine", "jobs tried", "jobs failed", "of users", "rate", "at least", "elsewhere"),
        [(name(one["machine"]), count(one["jobs_tried"]), count(one["jobs_failed"]),
          count(one["users"]), percent(one["rate"]), percent(one["rate_at_least"]),
          percent(one["rate_expected"])) for one in found["black_holes"]],
    )  # fmt: skip


# -- twin page -------------------------------------------------------------------------------------
# The part of the page that says what would have been, and the forecast, by the twin.


def what_would_have_been(told: Mapping[str, Any]) -> Iterator[Markup]:
    """The twin's answer in its own window."""
    found, currency = told["would_have_been"], told["tariff"]["currency"]
    yield heading("What would have been")
    if found is None:
        yield prose(
            "Not asked. `outrider twin` asks it of this journal; --twin shows its answer here."
        )
        return
    asked = f", asked {found['asked']['date']}" if found["asked"]["date"] else ""
    yield prose(f"The twin's answer{asked}. Incumbent: {name(found['incumbent'] or '')}.")
    if found["refused"] is not None:
        yield prose(f"The twin refused: {found['refused']}")
        yield from _fidelity(found)
        return
    yield prose(
        f"Its window: {window(found['window'])}, not the window of this report. The figures below "
        "hold for the whole of it and for no part of it, and the twin does not tell VOs apart."
    )
    yield from _fidelity(found)
    for policy, why in found["candidates_refused"].items():
        yield prose(f"Refused for {name(policy)}: {why}")
    if found["unknown"] is not None:
        yield prose(f"Amounts of energy are not known: {found['unknown']}.")
    if found["was"] is not None:
        was = found["was"]
        yield prose(
            f"What was in the twin's window: {cost(was['energy'], currency)} of runs that ended, "
            f"{number(was['badput_h'], 'h')} of badput, {count(was['evictions'])} runs thrown away."
        )
    for policy, measures in found["past"].items():
        yield subheading(f"{name(policy)}: what would have been, beside what was")
        yield table(
            ("", "times what was", "unit", "would have been", "saved (less than 0: more)", "sure"),
            [row for key, label in RATIO_LABELS.items()
             for row in _rows(label, measures.get(key), currency)],
        )  # fmt: skip
    yield from _forecast(found["forecast"], found["window"])


def _rows(
    label: str, measure: Mapping[str, Any] | None, currency: str
) -> Iterator[tuple[str, ...]]:
    """A row for each unit of a measure; one without amounts has its ratio alone."""
    if measure is None:
        yield label, MISSING, MISSING, MISSING, MISSING, "there is no such ratio"
        return
    ratio, would, saved = measure["ratio"], measure["would"] or {}, measure["saved"]
    told = (label, interval(ratio, digits=3))
    level = f"{100 * ratio['level']:g} % interval"
    sure = f"{level} without 1" if measure["told_apart"] else f"{level} with 1 in it"
    known = [unit for unit in would if would[unit] is not None]
    if not known:
        yield *told, MISSING, MISSING, MISSING, sure
    for unit in known:
        word, digits = units(currency)[unit]
        would_be, would_save = (interval(of[unit], digits=digits) for of in (would, saved))
        yield *told, word, would_be, would_save, sure


def _fidelity(found: Mapping[str, Any]) -> Iterator[Markup]:
    fidelity = found["fidelity"]
    if fidelity is None or not fidelity["parts"]:
        return
    parts = ", ".join(
        f"{part} {number(off, digits=3)} (at most {fidelity['bounds'].get(part, 0.0):g})"
        for part, off in fidelity["parts"].items()
    )
    passed = "It passed" if fidelity["passed"] else "It did not pass"
    yield prose(
        f"First the incumbent was simulated anew and held against what happened. {passed}; off "
        f"by: {parts}."
    )


def _forecast(forecast: Mapping[str, Any], twins: Mapping[str, Any]) -> Iterator[Markup]:
    if forecast["refused"] is not None:
        yield prose(f"No forecast: {forecast['refused']}")
    if forecast["ratios"] is None:
        return
    yield subheading("Forecast of the window after the twin's")
    expired = {
        None: "Whether it still holds is not known: this report's window is none of those after "
        "the twin's, or a figure for it is missing.",
        True: "It has expired: load or the share of waste of this report's window differs from "
        "that of the twin's by more than the forecast bears.",
        False: "Load and share of waste of this report's window are as it takes them to be.",
    }[forecast["expired"]]
    yield prose(
        f"Ratios, made from {window(twins)}. Other jobs will come, so that intervals are wider; no "
        f"amounts are made of them. {expired}"
    )
    for policy, measures in forecast["ratios"].items():
        yield table(
            (name(policy), "times the incumbent's"),
            [(label, MISSING if measures.get(key) is None
              else f"{interval(measures[key], digits=3)}, {100 * measures[key]['level']:g} %")
             for key, label in RATIO_LABELS.items()],
        )  # fmt: skip


# -- was page --------------------------------------------------------------------------------------
# The part of the page that says what was, and how sure that is.

PURPOSES: Final = {
    "goodput": "runs that completed their job",
    "badput": "runs that were thrown away",
    "open": "runs still going at the end",
    "idle": "machines idle",
    "sleep": "machines asleep",
    "owner": "machines used by their owners",
}
_NO_TARIFF: Final = {"price_per_kwh": None, "co2_g_per_kwh": None}
_Line = tuple[str, Callable[[Mapping[str, Any]], str]]


def what_was(told: Mapping[str, Any]) -> Iterator[Markup]:
    """Figures of the window beside those of the window before."""
    was, before = told["was"], told["before"]
    yield heading("What was")
    yield prose(f"Window: {window(told['window'])}. {covered(told['window'])}")
    if was is None:
        yield prose(
            "The journal tells nothing of this window. It tells of "
            f"{window(told['journal'])}; another window is asked for by --begin and --end."
        )
        return
    yield prose(
        f"Beside it the window before: {window(before['window'])}. {covered(before['window'])} "
        "Two counts of two windows: their difference is no effect of anything in particular."
    )
    currency = told["tariff"]["currency"]
    yield table(
        ("", "this window", "window before"),
        [(label, say(was), MISSING if before["was"] is None else say(before["was"]))
         for label, say in _lines(currency)],
    )  # fmt: skip
    yield prose(
        "Energy, goodput and badput of a run count in the window in which it ends, whenever it "
        "began; 'drawn' is what all machines drew in the window itself."
    )
    yield subheading("By VO")
    yield from _was_page_parts(was["by_vo"], "VO", told["tariff"], was["fairness"])
    yield subheading("By class")
    yield from _was_page_parts(was["by_class"], "class", told["tariff"], None)
    yield subheading("By machine group: energy, kWh")
    yield table(
        ("machine group", *PURPOSES.values()),
        [(name(group), *(cost_cells(of[purpose], _NO_TARIFF)[0] for purpose in PURPOSES))
         for group, of in was["by_machine_group"].items()],
    )  # fmt: skip


def covered(of: Mapping[str, Any]) -> str:
    """Return how much of a window the journal tells of."""
    return (
        f"The journal tells of {number(of['covered_s'] / 3600.0)} of its "
        f"{number((of['end_s'] - of['begin_s']) / 3600.0)} hours."
    )


def _lines(currency: str) -> Iterator[_Line]:
    """What the table of figures says, row by row."""
    yield "jobs submitted", lambda was: count(was["jobs"]["submitted"])
    yield "jobs completed", lambda was: count(was["jobs"]["completed"])
    yield "jobs removed", lambda was: count(was["jobs"]["removed"])
    yield "jobs there at the end", lambda was: count(was["jobs"]["unfinished_at_end"])
    yield "starts", lambda was: count(was["starts"])
    yield "wait until the first start, mean", lambda was: hours(was["wait_s"]["mean"])
    yield "wait, p95", lambda was: hours(was["wait_s"]["p95"])
    yield (
        "jobs that never started (not in the waits)",
        lambda was: count(was["wait_s"]["censored_n"]),
    )
    yield "overhead of completed jobs, mean", lambda was: hours(was["overhead_s"]["mean"])
    yield "overhead, p95", lambda was: hours(was["overhead_s"]["p95"])
    yield "goodput, CPU-hours", lambda was: number(was["goodput_h"], "h")
    yield "badput, CPU-hours", lambda was: number(was["badput_h"], "h")
    yield "badput of all work that ended", lambda was: percent(was["waste_ratio"])
    yield "runs thrown away", lambda was: count(sum(was["evictions"].values()))
    yield "by reason", lambda was: reasons(was["evictions"])
    yield "energy drawn by all machines", lambda was: cost(was["energy"]["drawn"], currency)
    for purpose, label in PURPOSES.items():
        yield f"energy of {label}", partial(_purpose, purpose, currency)
    yield (
        "of it drawn before the window began",
        lambda was: cost(was["energy"]["before_begin"], currency),
    )
    yield (
        "fairness F (1: every VO got its share)",
        lambda was: number(was["fairness"]["utility"], digits=3),
    )


def _purpose(purpose: str, currency: str, was: Mapping[str, Any]) -> str:
    return cost(was["energy"]["by_purpose"][purpose], currency)


def _was_page_parts(
    parts: Mapping[str, Mapping[str, Any]], what: str, tariff: Mapping[str, Any],
    fairness: Mapping[str, Any] | None,
) -> Iterator[Markup]:  # fmt: skip
    shares = ("share", "owed") if fairness is not None else ()
    rows = []
    for part, of in parts.items():
        row = [
            name(part), count(of["completed"]), count(of["thrown_away"]),
            number(of["goodput_h"], "h"), number(of["badput_h"], "h"),
            *cost_cells(of["goodput"], tariff), *cost_cells(of["badput"], tariff),
            MISSING if of["wait_s"] is None else hours(of["wait_s"]["mean"]),
        ]  # fmt: skip
        if fairness is not None:
            row += [percent(fairness[which].get(part)) for which in ("share", "target")]
        rows.append(row)
    yield table(
        (what, "runs completed", "thrown away", "goodput", "badput",
         *cost_heads("energy of goodput", tariff), *cost_heads("energy of badput", tariff),
         "mean wait", *shares), rows,
    )  # fmt: skip


def how_sure(told: Mapping[str, Any]) -> Iterator[Markup]:
    """What the counts rest on."""
    journal, was, tariff = told["journal"], told["was"], told["tariff"]
    yield heading("How sure")
    yield prose(
        "What was is counted, not estimated: every figure is as good as the record. The journal "
        f"tells of {window(journal)} ({journal['timezone']})."
    )
    if journal["begins_pruned"]:
        yield prose(
            "The beginning of the journal was deleted by its retention: jobs and machines from "
            "before are known from their next event on."
        )
    if was is not None:
        energy = was["energy"]
        if energy["drawn"]["kwh"] is None:
            yield prose(
                "Energy is not known in whole: watts of some machines are not declared. It is "
                "said where it is not known, and is never 0 for that."
            )
        else:
            yield prose(
                f"Of the energy {percent(energy['measured_ratio'])} was measured by meters; the "
                "rest is declared watts times seconds, as good as the declaration."
            )
        if not was["fairness"]["targets_given"]:
            yield prose("No shares were given: every VO is taken to be owed the same.")
    yield prose(
        f"Machines: {count(journal['machines'])}, of which {count(journal['machines_inferred'])} "
        "are known only because jobs ran there. Gaps that were filled over the whole journal: "
        f"{reasons(journal['repairs'])}. Events set aside: {reasons(journal['set_aside'])}."
    )
    price, grams = tariff["price_per_kwh"], tariff["co2_g_per_kwh"]
    yield prose(
        ("No price was given. " if price is None
         else f"Money is {price:g} {tariff['currency']} per kWh, the same at every hour. ")
        + ("No CO2 of a kWh was given." if grams is None
           else f"CO2 is {grams:g} g per kWh, the same at every hour.")
    )  # fmt: skip
