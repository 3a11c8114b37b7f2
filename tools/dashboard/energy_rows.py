"""Rows about energy and waste: kWh, what they cost, and the runs that were thrown away."""

from typing import Final

from tools.dashboard.expressions import known, known_samples, share
from tools.dashboard.now_rows import ALWAYS, HOURLY, SEEN, mode
from tools.dashboard.panels import (
    MOMENT,
    NOW,
    SPAN,
    WINDOW,
    AnyPanel,
    Query,
    Row,
    Steps,
    bars,
    figures,
    lines,
)
from tools.dashboard.sources import Source, only

JOULES_A_KWH: Final = "3.6e6"
DAY_S: Final = "86400"
WASTE: Final[Steps] = ((None, "green"), (0.3, "yellow"), (0.6, "red"))
PLAUSIBLE: Final[Steps] = (
    (None, "red"),
    (0.2, "yellow"),
    (0.5, "green"),
    (2, "yellow"),
    (5, "red"),
)
EVICTIONS: Final = 'outrider_evictions_total{cluster=~"$cluster"}'
JOULES_OF: Final = 'outrider_energy_joules_total{{purpose=~"{}", cluster=~"$cluster"}}'
IN_CLUSTERS: Final = '{cluster=~"$cluster"}'
KNOWN_ONLY: Final = "Machines of known watts only."
PRICED: Final = f"kWh times the price chosen at the top, the same at every hour. {KNOWN_ONLY}"
MONEY: Final = "currencyEUR"
"""That of `outrider report`, unless it is told another; Grafana has no variable for a unit."""


def energy_rows(source: Source) -> list[Row]:
    """The rows, in their order on the page."""
    return [
        Row("Outrider", ALWAYS, [mode()]),
        _waste(source),
        *only(source.has_watts, _energy(), _money()),
        _evictions(),
    ]


def _kwh(span: str, purposes: str, by: str = "") -> str:
    joules = known_samples(JOULES_OF.format(purposes), span)
    return f"sum {by}(increase({joules})) / {JOULES_A_KWH}"


def _wasted_cpu(span: str) -> str:
    bad = f"sum(increase(outrider_badput_seconds_total[{span}]))"
    return share(bad, f"({bad} + sum(increase(outrider_goodput_seconds_total[{span}])))")


def _waste(source: Source) -> Row:
    def wasted(span: str) -> list[Query]:
        of_energy = share(_kwh(span, "badput"), f"({_kwh(span, 'badput|goodput')})")
        return [
            Query(_wasted_cpu(span), "CPU time"),
            *only(source.has_watts, Query(of_energy, "energy")),
        ]

    panels: list[AnyPanel] = [
        figures("Wasted share", "Badput over goodput and badput.", SPAN, "percentunit",
                *wasted("$__range"), steps=WASTE).height(8),
        lines("Wasted share in the window", "Badput over goodput and badput.", WINDOW,
              "percentunit", *wasted("$window"), width=9, steps=WASTE),
        lines("CPU hours an hour", "Of runs that ended: goodput completed their job, badput were "
              "thrown away.", WINDOW, "none",
              Query("sum(rate(outrider_goodput_seconds_total[$window]))", "goodput"),
              Query("sum(rate(outrider_badput_seconds_total[$window]))", "badput"),
              width=9, stacked=True),
    ]  # fmt: skip
    return Row("Waste", SEEN, panels)


def _energy() -> Row:
    counter = f"outrider_energy_joules_total{IN_CLUSTERS}"
    in_window = known_samples(counter, "$window")
    measured = f"sum(increase(outrider_energy_measured_joules_total{IN_CLUSTERS}[$__range]))"
    by_meters = 'sum without (source) (outrider_power_watts{source="measured"})'
    # NaN is the one value that differs from itself.
    unknown = f"count({counter} != {counter}) or 0 * count({counter})"
    return Row("Energy", SEEN, [
        bars("Energy by purpose", f"{KNOWN_ONLY} Goodput and badput are booked when a run ends.",
             SPAN, "kwatth", Query(_kwh("$__range", ".*", "by (purpose) "), "{{purpose}}")),
        bars("Energy by cluster", f"{KNOWN_ONLY} All purposes together.", SPAN, "kwatth",
             Query(_kwh("$__range", ".*", "by (cluster) "), "{{cluster}}")),
        lines("Mean power by purpose", f"{KNOWN_ONLY} Goodput and badput are booked when a run "
              "ends.", WINDOW, "watt",
              Query(f"sum by (purpose) (rate({in_window}))", "{{purpose}}"), stacked=True),
        figures("Energy of open runs", "Used so far by runs that have not ended; booked as "
                "goodput or badput then.", NOW, "kwatth",
                Query(f"sum{known(f'outrider_energy_open_joules{IN_CLUSTERS}')} / {JOULES_A_KWH}",
                      "open"), width=4),
        figures("Measured by meters", "Share of the energy that meters measured; the rest is "
                "reckoned by the table of watts.", SPAN, "percentunit",
                Query(share(measured, f"sum(increase({known_samples(counter, '$__range')}))"),
                      "measured"), width=4),
        figures("Unknown energies", "Pairs of purpose and cluster whose watts are not known. They "
                "are left out of the panels here, not counted as zero.", NOW, "none",
                Query(unknown, "unknown"), width=4, steps=((None, "green"), (1, "yellow"))),
        figures("Machines with a meter", "Whose reading holds.", NOW, "none",
                Query(known("outrider_metered_machines"), "machines"), width=4),
        figures("Meters against the table", "What meters say, as a share of what the table has "
                "for the same machines: far off is a wrong unit or a wrong table.", NOW,
                "percentunit", Query(share(by_meters, known("outrider_metered_table_watts")),
                                     "measured"), width=8, steps=PLAUSIBLE),
        lines("Power", "Measured by meters, and by the table for machines that none measures. One "
              "of them whose watts are unknown hides the table's part.", MOMENT, "watt",
              Query(known("outrider_power_watts"), "{{source}}"), width=24,
              stacked=True),
    ])  # fmt: skip


def _money() -> Row:
    def cost(kwh: str) -> str:
        return f"{kwh} * $price"

    every_day = known_samples(JOULES_OF.format(".*"), "$window")
    return Row("Money", SEEN, [
        bars("Cost by purpose", PRICED, SPAN, MONEY,
             Query(cost(_kwh("$__range", ".*", "by (purpose) ")), "{{purpose}}")),
        figures("Cost", f"Of all purposes, and of badput alone: work thrown away. {PRICED}", SPAN,
                MONEY, Query(cost(_kwh("$__range", ".*")), "all"),
                Query(cost(_kwh("$__range", "badput")), "badput")).height(8),
        lines("Cost of a day at this rate", f"By purpose. {PRICED}", WINDOW, MONEY,
              Query(f"sum by (purpose) (rate({every_day})) * {DAY_S} / {JOULES_A_KWH} * $price",
                    "{{purpose}}"), stacked=True),
    ])  # fmt: skip


def _evictions() -> Row:
    def hourly(label: str) -> str:
        return f"sum by ({label}) (rate({EVICTIONS}[$window])) * {HOURLY}"

    return Row("Evictions: runs that ended before their job was done", SEEN, [
        lines("Evictions an hour, by reason", "What the source does not say is unknown.", WINDOW,
              "none", Query(hourly("reason"), "{{reason}}"), width=9, stacked=True),
        lines("Evictions an hour, by cluster", "Of the machine that the run was on.", WINDOW,
              "none", Query(hourly("cluster"), "{{cluster}}"), width=9, stacked=True),
        bars("Evictions by reason", "How many.", SPAN, "none",
             Query(f"sum by (reason) (increase({EVICTIONS}[$__range]))", "{{reason}}")),
    ])  # fmt: skip
