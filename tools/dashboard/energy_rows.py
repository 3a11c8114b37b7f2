"""Rows about energy and waste: kWh, costs and wasted runs."""

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
KNOWN_ONLY: Final = "Only machines with known watts."
PRICED: Final = f"kWh times the price at the top, the same at every hour. {KNOWN_ONLY}"
MONEY: Final = "currencyEUR"
"""Default currency of `outrider report`; Grafana has no variable for a unit."""


def energy_rows(source: Source) -> list[Row]:
    """Return the rows in their order on the dashboard."""
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
        figures("Wasted share", "Badput / (goodput + badput).", SPAN, "percentunit",
                *wasted("$__range"), steps=WASTE).height(8),
        lines("Wasted share in the window", "Badput / (goodput + badput).", WINDOW,
              "percentunit", *wasted("$window"), width=9, steps=WASTE),
        lines("CPU hours per hour", "Of runs that ended: goodput completed their job, badput was "
              "wasted.", WINDOW, "none",
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
        bars("Energy by purpose", f"{KNOWN_ONLY} Goodput and badput count when a run ends.",
             SPAN, "kwatth", Query(_kwh("$__range", ".*", "by (purpose) "), "{{purpose}}")),
        bars("Energy by cluster", f"{KNOWN_ONLY} All purposes together.", SPAN, "kwatth",
             Query(_kwh("$__range", ".*", "by (cluster) "), "{{cluster}}")),
        lines("Mean power by purpose", f"{KNOWN_ONLY} Goodput and badput count when a run "
              "ends.", WINDOW, "watt",
              Query(f"sum by (purpose) (rate({in_window}))", "{{purpose}}"), stacked=True),
        figures("Energy of open runs", "Used so far by runs that have not ended; counts as "
                "goodput or badput at their end.", NOW, "kwatth",
                Query(f"sum{known(f'outrider_energy_open_joules{IN_CLUSTERS}')} / {JOULES_A_KWH}",
                      "open"), width=4),
        figures("Measured by meters", "Share of the energy that meters measured; the rest is "
                "computed from the table of watts.", SPAN, "percentunit",
                Query(share(measured, f"sum(increase({known_samples(counter, '$__range')}))"),
                      "measured"), width=4),
        figures("Unknown energies", "Pairs of purpose and cluster with unknown watts. They are "
                "left out of these panels, not counted as zero.", NOW, "none",
                Query(unknown, "unknown"), width=4, steps=((None, "green"), (1, "yellow"))),
        figures("Machines with a meter", "Machines with a valid meter reading.", NOW, "none",
                Query(known("outrider_metered_machines"), "machines"), width=4),
        figures("Meters / table", "Measured watts as a share of the table's watts for the same "
                "machines. If it is far from 100 %, check the unit and the table.", NOW,
                "percentunit", Query(share(by_meters, known("outrider_metered_table_watts")),
                                     "measured"), width=8, steps=PLAUSIBLE),
        lines("Power", "Measured by meters, and from the table for machines without one. If watts "
              "of one of those are unknown, the table's part is hidden.", MOMENT, "watt",
              Query(known("outrider_power_watts"), "{{source}}"), width=24,
              stacked=True),
    ])  # fmt: skip


def _money() -> Row:
    def cost(kwh: str) -> str:
        return f"{kwh} * $price"

    every_day = known_samples(JOULES_OF.format(".*"), "$window")
    return Row("Costs", SEEN, [
        bars("Cost by purpose", PRICED, SPAN, MONEY,
             Query(cost(_kwh("$__range", ".*", "by (purpose) ")), "{{purpose}}")),
        figures("Cost", f"Of all purposes, and of badput (wasted work). {PRICED}", SPAN,
                MONEY, Query(cost(_kwh("$__range", ".*")), "all"),
                Query(cost(_kwh("$__range", "badput")), "badput")).height(8),
        lines("Cost per day at this rate", f"By purpose. {PRICED}", WINDOW, MONEY,
              Query(f"sum by (purpose) (rate({every_day})) * {DAY_S} / {JOULES_A_KWH} * $price",
                    "{{purpose}}"), stacked=True),
    ])  # fmt: skip


def _evictions() -> Row:
    def hourly(label: str) -> str:
        return f"sum by ({label}) (rate({EVICTIONS}[$window])) * {HOURLY}"

    return Row("Evictions: runs that ended before their job was done", SEEN, [
        lines("Evictions per hour, by reason", "unknown: the source reports no reason.", WINDOW,
              "none", Query(hourly("reason"), "{{reason}}"), width=9, stacked=True),
        lines("Evictions per hour, by cluster", "Cluster of the run's machine.", WINDOW,
              "none", Query(hourly("cluster"), "{{cluster}}"), width=9, stacked=True),
        bars("Evictions by reason", "Number of evictions.", SPAN, "none",
             Query(f"sum by (reason) (increase({EVICTIONS}[$__range]))", "{{reason}}")),
    ])  # fmt: skip
