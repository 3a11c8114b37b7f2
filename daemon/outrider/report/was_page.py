"""The part of the page that says what was, and how sure that is."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final

from markupsafe import Markup

from outrider.report.page import heading, name, prose, subheading, table
from outrider.report.words import (
    NONE,
    cost,
    cost_cells,
    cost_heads,
    count,
    hours,
    number,
    percent,
    reasons,
    window,
)

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
        [(label, say(was), NONE if before["was"] is None else say(before["was"]))
         for label, say in _lines(currency)],
    )  # fmt: skip
    yield prose(
        "Energy, goodput and badput of a run count in the window in which it ends, whenever it "
        "began; 'drawn' is what all machines drew in the window itself."
    )
    yield subheading("By VO")
    yield from _parts(was["by_vo"], "VO", told["tariff"], was["fairness"])
    yield subheading("By class")
    yield from _parts(was["by_class"], "class", told["tariff"], None)
    yield subheading("By machine group: energy, kWh")
    yield table(
        ("machine group", *PURPOSES.values()),
        [(name(group), *(cost_cells(of[purpose], _NO_TARIFF)[0] for purpose in PURPOSES))
         for group, of in was["by_machine_group"].items()],
    )  # fmt: skip


def covered(of: Mapping[str, Any]) -> str:
    """How much of a window the journal tells of."""
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


def _parts(
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
            NONE if of["wait_s"] is None else hours(of["wait_s"]["mean"]),
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
