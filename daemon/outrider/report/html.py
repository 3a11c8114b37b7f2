"""HTML page of a report, made from its document alone."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from markupsafe import Markup

from outrider.model.quantities import MISSING, RATIO_LABELS, count, number, percent
from outrider.model.reasons import label as code_label
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


def html(report: Mapping[str, Any]) -> str:
    """Return the HTML page of a report.

    Args:
        report: `outrider.report.document.document`, and its provenance where it has any.
    """
    window = report["window"]
    title = f"Outrider report, {window['begin'][:10]} to {window['end'][:10]}"
    return page(title, _parts(report))


def _parts(report: Mapping[str, Any]) -> Iterator[Markup]:
    for line in summary(report):
        yield prose(line)
    yield from measured(report)
    yield from other_policies(report)
    yield from worst_offenders(report)
    yield from reliability(report)
    yield from made_by(report)


def summary(report: Mapping[str, Any]) -> list[str]:
    """Return the report in a few sentences, for the top of the page and for the terminal."""
    was, currency = report["was"], report["tariff"]["currency"]
    if was is None:
        lines = ["The journal has no record of this window."]
    else:
        badput = was["energy"]["by_purpose"]["badput"]
        counted = (
            "Energy drawn by all machines in this window: "
            f"{cost(was['energy']['drawn'], currency)}. "
            f"Wasted CPU time: {number(was['badput_h'], 'h')} "
            f"({percent(was['waste_ratio'])} of all runs that ended). "
            f"Energy of the wasted runs: {cost(badput, currency)}."
        )
        holes = ", ".join(name(one["machine"]) for one in report["offenders"]["black_holes"])
        lines = [counted, f"Black holes: {holes}."] if holes else [counted]
    return lines + _savings(report["would_have_been"], currency)


def _savings(found: Mapping[str, Any] | None, currency: str) -> list[str]:
    if found is None:
        return ["There is no twin result, so no estimate for other policies."]
    if found["refused"] is not None:
        return [f"Savings under other policies are not known: {found['refused']}"]
    lines, window = [], found["window"]
    for policy, measures in found["past"].items():
        energy = measures.get("energy_ratio")
        if energy is None or energy["saved"] is None:
            lines.append(f"Energy savings under {name(policy)} are not known.")
            continue
        sure = "" if energy["told_apart"] else "; this does not differ clearly from no saving"
        more = " (below 0: more energy)" if energy["ratio"]["high"] > 1.0 else ""
        lines.append(
            f"From {window['begin'][:10]} to {window['end'][:10]}, {name(policy)} would have saved "
            f"{amounts(energy['saved'], currency)}{more} of the energy of runs, the twin estimates "
            f"({100 * energy['ratio']['level']:g} % interval{sure})."
        )
    return lines


# -- offenders page -------------------------------------------------------------------------------
# Section of the page with the users, machines and jobs that wasted most.


def worst_offenders(report: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield the lists of users, machines, black holes and jobs; nothing for an empty window."""
    found, tariff = report["offenders"], report["tariff"]
    if found is None:
        return
    heads = (
        "wasted", "share of waste", *cost_heads("energy wasted", tariff), "wasted runs", "useful"
    )  # fmt: skip
    yield heading("Where computing time was wasted")
    yield prose(
        f"Runs that ended from {window(report['window'])} before their job was done, whatever the "
        "cause. A user whose jobs are evicted by owners is listed, and so is a user who removes "
        "jobs. The reasons show the difference."
    )
    yield subheading("Users, by wasted CPU time")
    yield table(
        ("user", "reasons", *heads),
        [(name(one["user"]), reasons(one["reasons"]), *_badput(one, tariff))
         for one in found["users"]],
        in_words=2,
    )  # fmt: skip
    yield subheading("Machines, by wasted CPU time")
    yield table(
        ("machine", "reasons", *heads, "starts"),
        [(name(one["machine"]), reasons(one["reasons"]), *_badput(one, tariff),
          count(one["starts"])) for one in found["machines"]],
        in_words=2,
    )  # fmt: skip
    yield from _starts(found)
    yield subheading("Jobs with the most wasted runs")
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
        f"A start counts as failed if the run ended within {minutes} as "
        f"{', '.join(map(code_label, rule['reasons']))}. A job counts once on each machine."
    )
    yield table(
        ("machine", "jobs tried", "jobs failed"),
        [(name(one["machine"]), count(one["jobs_tried"]), count(one["jobs_failed"]))
         for one in found["failed_starts"]],
    )  # fmt: skip
    yield subheading("Black holes")
    yield prose(
        f"A black hole is a machine whose rate of failed starts is more than {rule['times']:g} "
        f"times that of the same users' jobs elsewhere, with jobs of {count(rule['fewest_users'])} "
        "users or more. This holds for the lower bound of the rate: one-sided, at "
        f"{percent(1.0 - rule['alpha'])} for all {count(rule['machines'])} machines together. Jobs "
        "that fail but count as completed are not seen, because the journal has no exit codes."
    )
    if not found["black_holes"]:
        yield prose("No black hole was found.")
        return
    yield table(
        ("machine", "jobs tried", "jobs failed", "of users", "rate", "at least", "elsewhere"),
        [(name(one["machine"]), count(one["jobs_tried"]), count(one["jobs_failed"]),
          count(one["users"]), percent(one["rate"]), percent(one["rate_at_least"]),
          percent(one["rate_expected"])) for one in found["black_holes"]],
    )  # fmt: skip


# -- twin page ------------------------------------------------------------------------------------
# Section of the page with the twin's result: estimates for the past, and the forecast.


def other_policies(report: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield the section on the twin's result, in the twin's own window."""
    found, currency = report["would_have_been"], report["tariff"]["currency"]
    yield heading("What other policies would have done")
    if found is None:
        yield prose(
            "No twin result. Run `outrider twin` on this journal and pass its result with --twin."
        )
        return
    asked = f" of {found['asked']['date']}" if found["asked"]["date"] else ""
    yield prose(f"The twin's result{asked}. Current scheduler: {name(found['incumbent'] or '')}.")
    if found["refused"] is not None:
        yield prose(f"The twin refused: {found['refused']}")
        yield from _fidelity(found)
        return
    yield prose(
        f"The twin's window is {window(found['window'])}. It is not the window of this report: the "
        "figures below are totals of the twin's whole window. The twin does not distinguish VOs."
    )
    yield from _fidelity(found)
    for policy, why in found["candidates_refused"].items():
        yield prose(f"No estimate for {name(policy)}: {why}")
    if found["unknown"] is not None:
        yield prose(f"Amounts of energy are not known: {found['unknown']}.")
    if found["was"] is not None:
        was = found["was"]
        yield prose(
            f"Measured in the twin's window: {cost(was['energy'], currency)} in runs that ended, "
            f"{number(was['badput_h'], 'h')} of CPU time in {count(was['evictions'])} wasted runs."
        )
    for policy, measures in found["past"].items():
        yield subheading(f"{name(policy)}: estimated, compared with measured")
        yield table(
            ("", "estimated / measured", "unit", "estimated", "saved (below 0: more)", "certainty"),
            [row for key, label in RATIO_LABELS.items()
             for row in _rows(label, measures.get(key), currency)],
        )  # fmt: skip
    yield from _forecast(found["forecast"], found["window"])


def _rows(
    label: str, measure: Mapping[str, Any] | None, currency: str
) -> Iterator[tuple[str, ...]]:
    """Yield a row for each unit of a measure; without amounts only its ratio."""
    if measure is None:
        yield label, MISSING, MISSING, MISSING, MISSING, "no ratio"
        return
    ratio, would, saved = measure["ratio"], measure["would"] or {}, measure["saved"]
    row = (label, interval(ratio, digits=3))
    level = f"{100 * ratio['level']:g} % interval"
    sure = f"{level} excludes 1" if measure["told_apart"] else f"{level} includes 1"
    known = [unit for unit in would if would[unit] is not None]
    if not known:
        yield *row, MISSING, MISSING, MISSING, sure
    for unit in known:
        word, digits = units(currency)[unit]
        would_be, would_save = (interval(of[unit], digits=digits) for of in (would, saved))
        yield *row, word, would_be, would_save, sure


def _fidelity(found: Mapping[str, Any]) -> Iterator[Markup]:
    fidelity = found["fidelity"]
    if fidelity is None or not fidelity["parts"]:
        return
    parts = ", ".join(
        f"{part} {number(off, digits=3)} (at most {fidelity['bounds'].get(part, 0.0):g})"
        for part, off in fidelity["parts"].items()
    )
    passed = "passed" if fidelity["passed"] else "failed"
    yield prose(
        "Fidelity check: the twin simulated the current scheduler and compared it with what "
        f"happened. The check {passed}. Deviations: {parts}."
    )


def _forecast(forecast: Mapping[str, Any], twins: Mapping[str, Any]) -> Iterator[Markup]:
    if forecast["refused"] is not None:
        yield prose(f"No forecast: {forecast['refused']}")
    if forecast["ratios"] is None:
        return
    yield subheading("Forecast for the period after the twin's window")
    expired = {
        None: "It is not known whether the forecast still holds: the window of this report does not"
        " follow the twin's window, or a figure for it is missing.",
        True: "The forecast has expired: load or share of waste in this window differ too much"
        " from those in the twin's window.",
        False: "The forecast still holds: load and share of waste in this window fit it.",
    }[forecast["expired"]]
    yield prose(
        f"Ratios, forecast from {window(twins)}. The coming jobs are not known, so the intervals "
        f"are wider and no amounts are given. {expired}"
    )
    for policy, measures in forecast["ratios"].items():
        yield table(
            (name(policy), "ratio to the current scheduler"),
            [(label, MISSING if measures.get(key) is None
              else f"{interval(measures[key], digits=3)}, {100 * measures[key]['level']:g} %")
             for key, label in RATIO_LABELS.items()],
        )  # fmt: skip


# -- was page -------------------------------------------------------------------------------------
# Section of the page with the counted figures, and how reliable they are.

PURPOSES: Final = {
    "goodput": "runs that completed their job",
    "badput": "wasted runs",
    "open": "runs not ended yet",
    "idle": "machines idle",
    "sleep": "machines asleep",
    "owner": "machines used by their owners",
}
_NO_TARIFF: Final = {"price_per_kwh": None, "co2_g_per_kwh": None}
_Line = tuple[str, Callable[[Mapping[str, Any]], str]]


def measured(report: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield the figures of the window, next to those of the window before."""
    was, before = report["was"], report["before"]
    yield heading("What happened")
    yield prose(f"Window: {window(report['window'])}. {covered(report['window'])}")
    if was is None:
        yield prose(
            "The journal has no record of this window. It covers "
            f"{window(report['journal'])}; choose another window with --begin and --end."
        )
        return
    yield prose(
        f"For comparison, the window before: {window(before['window'])}. "
        f"{covered(before['window'])} A difference between the two can have many causes."
    )
    currency = report["tariff"]["currency"]
    yield table(
        ("", "this window", "window before"),
        [(label, say(was), MISSING if before["was"] is None else say(before["was"]))
         for label, say in _lines(currency)],
    )  # fmt: skip
    yield prose(
        "Energy and CPU time of a run count in the window in which the run ends, even if it began "
        "earlier. Energy drawn is what all machines drew within the window."
    )
    yield subheading("By VO")
    yield from _parts_table(was["by_vo"], "VO", report["tariff"], was["fairness"])
    yield subheading("By class")
    yield from _parts_table(was["by_class"], "class", report["tariff"], None)
    yield subheading("By machine group: energy, kWh")
    yield table(
        ("machine group", *PURPOSES.values()),
        [(name(group), *(cost_cells(of[purpose], _NO_TARIFF)[0] for purpose in PURPOSES))
         for group, of in was["by_machine_group"].items()],
    )  # fmt: skip


def covered(of: Mapping[str, Any]) -> str:
    """Return a sentence on the hours of a window that the journal covers."""
    return (
        f"The journal covers {number(of['covered_s'] / 3600.0)} of its "
        f"{number((of['end_s'] - of['begin_s']) / 3600.0)} hours."
    )


def _lines(currency: str) -> Iterator[_Line]:
    """Yield the label of each row of the table of figures, and how to format its value."""
    yield "jobs submitted", lambda was: count(was["jobs"]["submitted"])
    yield "jobs completed", lambda was: count(was["jobs"]["completed"])
    yield "jobs removed", lambda was: count(was["jobs"]["removed"])
    yield "jobs in the system at the end", lambda was: count(was["jobs"]["unfinished_at_end"])
    yield "starts", lambda was: count(was["starts"])
    yield "wait until the first start, mean", lambda was: hours(was["wait_s"]["mean"])
    yield "wait, p95", lambda was: hours(was["wait_s"]["p95"])
    yield (
        "jobs that never started (not in the waits)",
        lambda was: count(was["wait_s"]["censored_n"]),
    )
    yield "overhead of completed jobs, mean", lambda was: hours(was["overhead_s"]["mean"])
    yield "overhead, p95", lambda was: hours(was["overhead_s"]["p95"])
    yield "useful CPU time (goodput)", lambda was: number(was["goodput_h"], "h")
    yield "wasted CPU time (badput)", lambda was: number(was["badput_h"], "h")
    yield "wasted share of all runs that ended", lambda was: percent(was["waste_ratio"])
    yield "wasted runs", lambda was: count(sum(was["evictions"].values()))
    yield "wasted runs by reason", lambda was: reasons(was["evictions"])
    yield "energy drawn by all machines", lambda was: cost(was["energy"]["drawn"], currency)
    for purpose, label in PURPOSES.items():
        yield f"energy of {label}", partial(_purpose, purpose, currency)
    yield (
        "energy drawn before the window began (included above)",
        lambda was: cost(was["energy"]["before_begin"], currency),
    )
    yield (
        "fairness F (1: every VO got its share)",
        lambda was: number(was["fairness"]["utility"], digits=3),
    )


def _purpose(purpose: str, currency: str, was: Mapping[str, Any]) -> str:
    return cost(was["energy"]["by_purpose"][purpose], currency)


def _parts_table(
    parts: Mapping[str, Mapping[str, Any]], what: str, tariff: Mapping[str, Any],
    fairness: Mapping[str, Any] | None,
) -> Iterator[Markup]:  # fmt: skip
    shares = ("share", "target share") if fairness is not None else ()
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
        (what, "runs completed", "wasted runs", "useful CPU time", "wasted CPU time",
         *cost_heads("energy of completed runs", tariff), *cost_heads("energy wasted", tariff),
         "mean wait", *shares), rows,
    )  # fmt: skip


def reliability(report: Mapping[str, Any]) -> Iterator[Markup]:
    """Yield the section on the data that the figures rest on."""
    journal, was, tariff = report["journal"], report["was"], report["tariff"]
    yield heading("How reliable the figures are")
    yield prose(
        'The figures under "What happened" are counted, not estimated: they are as good as the '
        f"record. The journal covers {window(journal)} ({journal['timezone']})."
    )
    if journal["begins_pruned"]:
        yield prose(
            "The beginning of the journal was deleted by its retention. Earlier jobs and machines "
            "are known only from their next event."
        )
    if was is not None:
        energy = was["energy"]
        if energy["drawn"]["kwh"] is None:
            yield prose(
                "Not all energy is known, because watts of some machines are not declared. Unknown "
                "energy is shown as not known, never as 0."
            )
        else:
            yield prose(
                f"Meters measured {percent(energy['measured_ratio'])} of the energy. The rest is "
                "declared watts times seconds, as good as the declaration."
            )
        if not was["fairness"]["targets_given"]:
            yield prose("No shares were given: all VOs have the same target share.")
    yield prose(
        f"Machines: {count(journal['machines'])}, of which {count(journal['machines_inferred'])} "
        "are known only because jobs ran there. Gaps that were filled in the whole journal: "
        f"{reasons(journal['repairs'])}. Events rejected: {reasons(journal['set_aside'])}."
    )
    price, grams = tariff["price_per_kwh"], tariff["co2_g_per_kwh"]
    yield prose(
        ("No price was given. " if price is None
         else f"Price: {price:g} {tariff['currency']} per kWh, the same at every hour. ")
        + ("No CO2 emission per kWh was given." if grams is None
           else f"CO2: {grams:g} g per kWh, the same at every hour.")
    )  # fmt: skip
